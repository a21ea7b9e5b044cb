"""Checks at the end of a run: races, outputs never written, inputs modified, dead stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..findings import ADVICE, ERROR, Finding, FindingKind, Site
from .races import task_races

if TYPE_CHECKING:
    from ..host.session import Session
    from ..run_context import RunContext


def end_findings(run: RunContext, session: Session, arguments: Sequence[Any], completed: bool) -> None:
    """Add what can only be said when everything has run."""
    if not run.settings.sanitize:
        return
    if run.log:
        task_races(run, session)
    if run.wants(FindingKind.INPUT_MODIFIED):
        _inputs(run, arguments)
    if completed and run.wants(FindingKind.NEVER_WRITTEN):
        _outputs(run, session, arguments)
    if completed and run.wants(FindingKind.DEAD_STORE):
        _dead_stores(run, session)


def _inputs(run: RunContext, arguments: Sequence[Any]) -> None:
    for a in arguments:
        buffer = a.buffer
        if buffer is None or buffer.before is None:
            continue
        changed = buffer.before.view(np.uint8) != buffer.flat.view(np.uint8)
        if not changed.any():
            continue
        site, declared = run.global_checks.input_writes[buffer.id]
        elements = np.unique(np.nonzero(changed)[0] // buffer.flat.itemsize)
        severity = ADVICE if declared else ERROR
        why = (
            "the program itself writes it; declare it pl.InOut" if declared else "the program declares it as read only"
        )
        run.report(
            Finding(
                FindingKind.INPUT_MODIFIED,
                severity,
                f"{len(elements)} element(s) of the input {buffer.name!r} changed; {why}",
                site,
                space=buffer.name,
                addresses=((int(elements[0]) * buffer.flat.itemsize, (int(elements[-1]) + 1) * buffer.flat.itemsize),),
            )
        )


def _outputs(run: RunContext, session: Session, arguments: Sequence[Any]) -> None:
    line = session.artifact.host.place["line"] or 0
    for a in arguments:
        buffer = a.buffer
        if buffer is None or buffer.role != "out" or buffer.defined is None or not buffer.flat.size:
            continue
        written = int(np.count_nonzero(buffer.defined))
        if written == buffer.flat.size:
            continue
        none = written == 0
        text = "is never written" if none else f"is written in {written} of {buffer.flat.size} elements only"
        run.report(
            Finding(
                FindingKind.NEVER_WRITTEN,
                ERROR if none else ADVICE,
                f"the output {buffer.name!r} {text}",
                Site("", "entry", run.file, line, None, "host"),
                space=buffer.name,
            )
        )


def _dead_stores(run: RunContext, session: Session) -> None:
    written: dict[tuple[str, int], Any] = {}
    read: set[tuple[str, int]] = set()
    for key, kernel in session.artifact.built.items():
        shadow = kernel.shadow
        if shadow is None or not key[3].shadow:
            continue
        for site in shadow.written_sites:
            written.setdefault((kernel.file, kernel.sites[site].line), shadow.place(site))
        read |= {(kernel.file, kernel.sites[s].line) for s in shadow.read_sites if s >= 0}
    for spot in sorted(set(written) - read):
        run.report(Finding(FindingKind.DEAD_STORE, ADVICE, "nothing reads what this operation writes", written[spot]))
