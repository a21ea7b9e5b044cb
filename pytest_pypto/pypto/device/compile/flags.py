"""Flags between the queues of a core, barriers and cache commands.

The machine runs the operations of a core one after the other, so none of these changes a value. What can still be wrong
is the text: a flag that is awaited and never set stops a real core, a flag that is set and never awaited stays set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..findings import ADVICE, ERROR, Finding, FindingKind
from ..text.nodes import Op

if TYPE_CHECKING:
    from .builder import Builder

Key = tuple[str, str, int]


@dataclass
class Flag:
    """How often one flag of one core was set and awaited, and where last."""

    sets: int = 0
    waits: int = 0
    set_at: int = -1
    waited_at: int = -1


def _flag(k: Builder, op: Op) -> None:
    key: Key = (op.attrs["from"], op.attrs["to"], op.attrs["event"])
    info, sets = k.site(op, "scalar"), op.name == "pto.set_flag"

    def note(ag: Any) -> None:
        flag = ag.flags.setdefault(key, Flag())
        if sets:
            flag.sets, flag.set_at = flag.sets + 1, info.id
        else:
            flag.waits, flag.waited_at = flag.waits + 1, info.id

    k.emit.line(f"{k.emit.bind('flag', note)}(ag)")


def flag_findings(ag: Any) -> list[Finding]:
    """What is left of the flags of an agent that has ended."""
    found = []
    for (source, target, event), flag in ag.flags.items():
        name = f"flag {event} from {source} to {target}"
        counts = f"set {flag.sets} time(s) and awaited {flag.waits} time(s)"
        if flag.waits > flag.sets:
            message = f"{name} is {counts}; the queue that waits for it never goes on"
            found.append(Finding(FindingKind.DEADLOCK, ERROR, message, ag.place(flag.waited_at)))
        elif flag.sets > flag.waits:
            message = f"{name} is {counts}; it stays set for whoever runs next"
            found.append(Finding(FindingKind.LEFTOVER, ADVICE, message, ag.place(flag.set_at)))
    return found


def _event(k: Builder, op: Op) -> None:
    for name in op.ins:
        k.whole(op, name)
    k.site(op, "scalar")


def _ffts(k: Builder, op: Op) -> None:
    from .globalops import pointer

    found = pointer(k, op, op.ins[0])
    if found.type != op.types[0]:
        k.fail(op, f"%{op.ins[0]} is used as {op.types[0]}, but has type {found.type}")
    k.site(op, "scalar")


def _cache(k: Builder, op: Op) -> None:
    from .globalops import partition_of

    for name, typ in zip(op.ins, op.types, strict=True):
        partition_of(k, op, name, typ)
    k.site(op, "scalar")


def _plain(k: Builder, op: Op) -> None:
    k.site(op, "scalar")


HANDLERS = {
    **dict.fromkeys(["pto.set_flag", "pto.wait_flag"], _flag),
    **dict.fromkeys(["pto.sync.set", "pto.sync.wait"], _event),
    **dict.fromkeys(["pto.barrier", "pto.fence.barrier_all"], _plain),
    "pto.cmo.cacheinvalid": _cache,
    "pto.set_ffts": _ffts,
}
