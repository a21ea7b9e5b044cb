"""Checks of global memory during a run: undefined elements, inputs that are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..findings import Finding, FindingKind, Site
from ..machine.gm import GlobalBuffer, GmArg, GmView, strided

if TYPE_CHECKING:
    from ..host.session import Session
    from ..mixed.agents import Agent
    from ..run_context import RunContext

Where = tuple[int, ...]


class GlobalChecks:
    """Called for loads of buffers that are not wholly defined, and for stores to inputs."""

    def __init__(self, run: RunContext, session: Session) -> None:
        self.run, self.session = run, session
        self.input_writes: dict[int, tuple[Site, bool]] = {}

    def load(self, ag: Agent, site: int, view: GmView, offsets: Where, sizes: Where) -> None:
        """Elements that nothing has written must not be loaded."""
        marks = view.marks
        if marks is None:
            return
        part = marks[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]
        if part.all():
            return
        holes = np.argwhere(~part)
        first = [int(h) + o for h, o in zip(holes[0], offsets, strict=True)]
        self._undefined(ag.place(site), view.root, len(holes), first)

    def _undefined(self, site: Site, root: GlobalBuffer, count: int, first: list[int]) -> None:
        what = "argument" if root.role == "out" else "tensor"
        self.run.report(
            Finding(
                FindingKind.UNINITIALISED,
                "error",
                f"loads {count} element(s) of the {what} {root.name!r} that nothing has written, first {first}",
                site,
                space=root.name,
            )
        )

    def store(self, ag: Agent, site: int, view: GmView) -> None:
        """An input is about to be written by a kernel."""
        self.input_written(view.root.base, ag.place(site), self._declared(ag, view))

    def _declared(self, ag: Agent, view: GmView) -> bool:
        """True when the program says that this task writes the buffer."""
        from ..host.graph import WRITES

        task = self.session.graph.tasks[ag.task]
        return any(a.root.base is view.root.base and d in WRITES for a, d in task.args)

    def input_written(self, root: GlobalBuffer, site: Site, declared: bool) -> None:
        """An input is about to be written."""
        if root.before is None:
            root.before = root.flat.copy()
        if root.id not in self.input_writes or not declared:
            self.input_writes[root.id] = (site, declared)

    # ---- the host

    def host_load(self, site: Site, arg: GmArg) -> None:
        """The host reads a region."""
        if arg.root.defined is None:
            return
        part = strided(arg.root.defined, arg.offset, arg.shape, arg.strides)
        if not part.all():
            holes = np.argwhere(~part)
            self._undefined(site, arg.root, len(holes), [int(h) for h in holes[0]])

    def host_store(self, site: Site, arg: GmArg) -> None:
        """The host writes a region."""
        if arg.root.defined is not None:
            strided(arg.root.defined, arg.offset, arg.shape, arg.strides)[...] = True
        if arg.root.base.role == "in":
            self.input_written(arg.root.base, site, True)
