"""Ring windows and heaps: how many tasks and bytes the open scopes hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..findings import Finding, FindingKind, Site

if TYPE_CHECKING:
    from ..run_context import RunContext

ALIGN = 1024
MAX_DEPTH = 64


@dataclass
class Scope:
    """One open scope: its ring, and what it holds there."""

    depth: int
    ring: int
    manual: bool
    tasks: int = 0
    heap: int = 0
    deps: int = 0
    site: Site = field(default_factory=Site)
    implicit: bool = False
    """Stands for the program itself: what is submitted outside every written scope."""


class Rings:
    """The four rings. A scope at depth d uses ring min(d, 3) and gives everything back when it closes."""

    def __init__(self, run: RunContext) -> None:
        settings = run.settings
        self.run = run
        self.window = settings.per_ring("ring_task_window")
        self.heap = settings.per_ring("ring_heap")
        self.pool = settings.per_ring("ring_dep_pool")
        self.scopes: list[Scope] = []
        self.tasks, self.bytes, self.deps = [0] * 4, [0] * 4, [0] * 4
        self.local = [0] * 4
        self.top = {"task_window": [0] * 4, "heap": [0] * 4, "dep_pool": [0] * 4}
        self.events: list[dict[str, Any]] = []
        self.tensormap = 0
        self.tensormap_max = 0

    @property
    def current(self) -> Scope:
        """The innermost open scope."""
        return self.scopes[-1]

    @property
    def manual(self) -> bool:
        """True when some open scope takes explicit dependencies only."""
        return any(s.manual for s in self.scopes)

    def open(self, manual: bool, site: Site, implicit: bool = False) -> None:
        """Enter a scope."""
        depth = sum(not s.implicit for s in self.scopes)
        if depth >= MAX_DEPTH:
            self.run.stop(f"runtime scopes are nested deeper than {MAX_DEPTH}", site.pto or None, site.line or None)
        if self.manual:
            inner = "manual" if manual else "automatic"
            self.run.stop(
                f"an {inner} scope inside a manual scope is not possible; close the manual scope first",
                site.pto or None,
                site.line or None,
            )
        self.scopes.append(Scope(depth, min(depth, 3), manual, site=site, implicit=implicit))
        self._event("begin")

    def close(self) -> None:
        """Leave the innermost scope: its ring gets everything back."""
        self._event("end")
        scope = self.scopes.pop()
        self.tasks[scope.ring] -= scope.tasks
        self.bytes[scope.ring] -= scope.heap
        self.deps[scope.ring] -= scope.deps

    def submit(self, site: Site, deps: int) -> tuple[int, int]:
        """Take a task slot; gives the ring and the number in it."""
        scope = self.current
        ring = scope.ring
        self.tasks[ring] += 1
        scope.tasks += 1
        self.deps[ring] += deps
        scope.deps += deps
        if self.tasks[ring] >= self.window[ring]:
            self._full(site, ring, "task window", self.tasks[ring], self.window[ring], "ring_task_window")
        if self.deps[ring] > self.pool[ring]:
            self._full(site, ring, "dependency pool", self.deps[ring], self.pool[ring], "ring_dep_pool")
        self._peak("task_window", ring, self.tasks[ring])
        self._peak("dep_pool", ring, self.deps[ring])
        self.local[ring] += 1
        return ring, self.local[ring] - 1

    def allocate(self, site: Site, size: int) -> int:
        """Take bytes of the heap; gives their simulated address."""
        scope = self.current
        ring, taken = scope.ring, -(-max(size, 1) // ALIGN) * ALIGN
        address = (ring + 1 << 40) + self.bytes[ring]
        self.bytes[ring] += taken
        scope.heap += taken
        if self.bytes[ring] > self.heap[ring]:
            self._full(site, ring, "heap", self.bytes[ring], self.heap[ring], "ring_heap")
        self._peak("heap", ring, self.bytes[ring])
        return address

    def _full(self, site: Site, ring: int, what: str, used: int, limit: int, setting: str) -> None:
        self.run.halt(
            Finding(
                FindingKind.DEADLOCK,
                "error",
                f"the {what} of ring {ring} is full: the open scopes hold {used} of {limit}, and only closing a scope "
                f"gives something back; close scopes earlier or raise {setting}",
                site,
                self.current.site,
            )
        )

    def _peak(self, what: str, ring: int, value: int) -> None:
        self.top[what][ring] = max(self.top[what][ring], value)

    def _event(self, phase: str) -> None:
        scope = self.current
        if scope.implicit:
            return
        ring = scope.ring
        self.events.append(
            {
                "site": f"{scope.site.pto}:{scope.site.line}",
                "phase": phase,
                "depth": scope.depth,
                "ring": ring,
                "task_window_start": self.tasks[ring] - scope.tasks,
                "task_window_end": self.tasks[ring],
                "heap_start": self.bytes[ring] - scope.heap,
                "heap_end": self.bytes[ring],
                "dep_pool_start": self.deps[ring] - scope.deps,
                "dep_pool_end": self.deps[ring],
                "tensormap": self.tensormap,
            }
        )
