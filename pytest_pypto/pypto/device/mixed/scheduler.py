"""Runs the agents of one task. One agent runs at a time, until it has to wait; who is next is decided by the order.

A blocked set of agents is a deadlock at once: nobody can run, so nobody ever will.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..findings import Finding, FindingKind

if TYPE_CHECKING:
    from ..run_context import RunContext
    from .agents import Agent

Chooser = Callable[[Sequence["Agent"]], "Agent"]
Body = Callable[[], Any]


def chooser(order: str, seed: int) -> Chooser:
    """How the next agent is picked among those that can run."""
    if order == "late":
        return lambda ready: ready[-1]
    if order == "random":
        rng = random.Random(seed)
        return lambda ready: ready[rng.randrange(len(ready))]
    return lambda ready: ready[0]


def drive(run: RunContext, agents: Sequence[Agent], bodies: Sequence[Body], choose: Chooser) -> None:
    """Run all agents to their end.

    Raises:
        StopRun, DeviceError: a deadlock, or what a kernel raises.
    """
    started: dict[Agent, Any] = {}
    live = list(agents)
    make = dict(zip(agents, bodies, strict=True))
    explorer = run.explorer
    while live:
        ready = [a for a in live if a.wait is None or a.ready()]
        if not ready:
            deadlock(run, live, agents)
        ag = choose(ready) if explorer is None else explorer.pick(ready)
        if ag not in started:
            body = make[ag]()
            if not ag.kernel.yields:
                live.remove(ag)
                continue
            started[ag] = body
        try:
            next(started[ag])
        except StopIteration:
            live.remove(ag)


def deadlock(run: RunContext, live: Sequence[Agent], agents: Sequence[Agent]) -> None:
    """Report that nobody can run, with who waits for whom."""
    waits = [_wait_text(a, live, agents) for a in live]
    first, second = live[0], live[1] if len(live) > 1 else None
    assert first.wait is not None
    finding = Finding(
        FindingKind.DEADLOCK,
        "error",
        "no core can run: " + "; ".join(waits),
        first.place(first.wait[0]),
        None if second is None or second.wait is None else second.place(second.wait[0]),
        extra={"waits": waits},
    )
    run.halt(finding)


def _name(a: Agent) -> str:
    who = "the cube core" if a.kind == "aic" else f"vector lane {a.lane}"
    return who if a.blocks <= 1 else f"{who} of block {a.block}"


def _wait_text(a: Agent, live: Sequence[Agent], agents: Sequence[Agent]) -> str:
    assert a.wait is not None
    site, what, verb = a.wait
    line = a.kernel.sites[site].line
    head = f"{_name(a)} ({a.kernel.file}:{line})"
    if verb == "syncall":
        return f"{head} waits at a barrier over {what[0]} that not every core reaches"
    peers = [b for b in agents if b.block == a.block and b.kind != a.kind]
    if verb == "pop":
        missing = [b for b in peers if _sent(what, b) <= what.popped[a.lane if what.consumers > 1 else 0]]
        return (
            f"{head} waits for message {what.popped[a.lane if what.consumers > 1 else 0] + 1} of pipe {what.id} "
            f"({what.way}) from {_list(missing, live)}"
        )
    holders = [b for b in peers if _freed(what, b) == min(what.freed)]
    return (
        f"{head} waits for one of {what.slots} slot(s) of pipe {what.id} ({what.way}), "
        f"which {_list(holders, live)} would have to free"
    )


def _sent(ring: Any, b: Agent) -> int:
    return int(ring.pushed[b.lane if ring.producers > 1 else 0])


def _freed(ring: Any, b: Agent) -> int:
    return int(ring.freed[b.lane if ring.consumers > 1 else 0])


def _list(agents: Sequence[Agent], live: Sequence[Agent]) -> str:
    texts = [f"{_name(b)}{'' if b in live else ', which has ended'}" for b in agents]
    return " and ".join(texts) or "a core that this block does not have"
