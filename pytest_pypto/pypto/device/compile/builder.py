"""The compiler of one kernel function for one core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, NoReturn

from ..checks.shadow import Shadow
from ..findings import DeviceError, Finding, FindingKind, Site
from ..machine.memory import CoreMemory
from ..text.nodes import Func, Module, Op
from ..text.types import PtoType, PtrT, ScalarT, TileT
from .emit import Emitter
from .scalars import is_whole_type
from .scan import PipeDecl, Scan, check_types, scan, walk
from .values import Pointer, Scalar, SiteInfo, TileValue, Value

SPECIAL = {
    "__pypto_spmd_block_idx": "ag.block",
    "__pypto_spmd_block_num": "ag.blocks",
    "__pypto_spmd_subblock_idx": "ag.lane",
}
"""Parameters that the launch fills in."""

_YIELDING = ("pto.tpush_to_aiv", "pto.tpush_to_aic", "pto.tpop_from_aic", "pto.tpop_from_aiv", "pto.syncall")


@dataclass(frozen=True)
class Variant:
    """Which code is generated: with shadow memory, with the log of global accesses, stopping at those accesses."""

    shadow: bool = False
    log: bool = False
    explore: bool = False


@dataclass(eq=False)
class Kernel:
    """A compiled kernel bound to one core. `run(ag, tensors, scalars)` executes it (a generator when `yields`)."""

    name: str
    kind: str
    file: str
    run: Callable[..., Any]
    yields: bool
    sites: list[SiteInfo]
    shadow: Shadow | None
    pipes: Mapping[int, PipeDecl]
    params: list[tuple[str, PtoType]]
    peak: Mapping[str, int]
    memory: CoreMemory
    blocks: int
    source: str
    syncs: bool
    """True when it waits for the other blocks of its task."""
    begin: list[Callable[[], None]] = field(default_factory=list)
    ticks: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Ticks of the cost clock by how often each block was executed."""

    @property
    def tensors(self) -> int:
        """Number of pointer parameters."""
        return sum(isinstance(t, PtrT) for _, t in self.params)

    @property
    def scalars(self) -> list[ScalarT]:
        """Types of the scalar parameters that the host gives."""
        return [t for n, t in self.params if isinstance(t, ScalarT) and n not in SPECIAL]

    @property
    def takes_lane(self) -> bool:
        """True when the kernel asks for its lane."""
        return any(n == "__pypto_spmd_subblock_idx" for n, _ in self.params)


@lru_cache(maxsize=512)
def _code(source: str, name: str) -> CodeType:
    return compile(source, name, "exec")


class Builder:
    """State of one compilation; the modules `control`, `handles`, `tileops`, `globalops`, `pipeops` add to it."""

    def __init__(self, func: Func, module: Module, memory: CoreMemory, variant: Variant) -> None:
        self.func, self.module, self.memory, self.variant = func, module, memory, variant
        self.file = module.file
        self.emit = Emitter()
        self.env: dict[str, Value] = {}
        self.sites: list[SiteInfo] = []
        self.block = 0
        self.peak: dict[str, int] = {}
        self.ready_pipes: set[int] = set()
        check_types(func, self.file)
        self.scan: Scan = scan(func, self.file)
        self.mutated = {op.ins[0] for op in walk(func.body.ops) if op.name == "pto.set_validshape"}
        self.yields = variant.explore or any(n in self.scan.names for n in _YIELDING)
        self.begin: list[Callable[[], None]] = []
        self.shadow = Shadow(self._regions(), self.place) if variant.shadow else None

    def _regions(self) -> list[tuple[str, int, int]]:
        """Every byte range that some handle covers."""
        found = [(space, a, a + size) for space, starts, size in self.scan.storage.values() for a in starts]
        for op in walk(self.func.body.ops):  # the tiles of a multi buffer are ranges of their own
            if op.name == "pto.alloc_multi_tile":
                space, (a, *_), size = self.scan.storage[id(op)]
                each = size // op.out_types[0].count  # type: ignore[union-attr]
                found += [(space, a + i * each, a + (i + 1) * each) for i in range(size // each)]
        for op, way in self.scan.pops:
            decl, typ = self.scan.pipes.get(int(op.attrs.get("id", 0))), op.out_types[0]
            if decl is not None and way in decl.dirs and isinstance(typ, TileT):
                for i in range(decl.local):
                    base = decl.bases[way] + i * decl.slot_size
                    found.append((typ.loc, base, base + typ.nbytes))
        return found

    # ---- errors and places

    def fail(self, op: Op, message: str) -> NoReturn:
        """Refuse the kernel at `op`."""
        raise DeviceError(f"{op.name}: {message}", file=self.file, line=op.line)

    def site(self, op: Op, unit: str = "", cost: Any = None) -> SiteInfo:
        """A new site for `op`, in the block that is being written."""
        info = SiteInfo(len(self.sites), op.name.removeprefix("pto."), op.line, op.loc, self.block, unit, cost)
        self.sites.append(info)
        return info

    def place(self, site: int, ag: Any = None) -> Site:
        """The place of site number `site`, as executed by agent `ag`."""
        info = self.sites[site]
        return place_of(info, self.func.name, self.file, ag)

    def report(self, op: Op, kind: FindingKind, message: str, **more: Any) -> None:
        """Emit a report that is made when `op` is reached; without sanitizers it stops the run."""
        info = self.site(op)

        def tell(ag: Any) -> None:
            ag.report(Finding(kind, "error", message, place_of(info, self.func.name, self.file, ag), **more))

        self.emit.line(f"{self.emit.bind('r', tell)}(ag)")

    # ---- names

    def lookup(self, op: Op, name: str) -> Value:
        """What `%name` stands for."""
        found = self.env.get(name)
        if found is None:
            self.fail(op, f"%{name} is used here but not defined before")
        return found

    def scalar(self, op: Op, name: str) -> Scalar:
        """`%name`, which must be a number."""
        found = self.lookup(op, name)
        if not isinstance(found, Scalar):
            self.fail(op, f"%{name} must be a number, it is {type(found).__name__} of type {found.type}")
        return found

    def typed(self, op: Op, name: str, typ: PtoType) -> Scalar:
        """`%name`, which must be a number of the type that the text states."""
        found = self.scalar(op, name)
        if found.type != typ:
            self.fail(op, f"%{name} is used as {typ}, but has type {found.type}")
        return found

    def whole(self, op: Op, name: str) -> Scalar:
        """`%name`, which must be a whole number: an extent, an offset, an index."""
        found = self.scalar(op, name)
        if not is_whole_type(found.type):
            self.fail(op, f"%{name} must be a whole number, it has type {found.type}")
        return found

    def wholes(self, op: Op, group: str) -> tuple[Scalar, ...]:
        """The operands of a named list, which must be whole numbers."""
        return tuple(self.whole(op, name) for name in op.groups.get(group, ()))

    def tile(self, op: Op, name: str, typ: PtoType | None = None) -> TileValue:
        """`%name`, which must be a tile of the type that the text states."""
        found = self.lookup(op, name)
        if not isinstance(found, TileValue):
            self.fail(op, f"%{name} must be a tile, it is {type(found).__name__} of type {found.type}")
        if typ is not None and (not isinstance(typ, TileT) or not found.type.same_storage(typ)):
            self.fail(op, f"%{name} is used as {typ}, but was made as {found.type}")
        return found

    def define(self, op: Op, name: str, value: Value) -> None:
        """Bind a result name."""
        if name in self.env:
            self.fail(op, f"%{name} is defined twice")
        self.env[name] = value

    def assign(self, op: Op, code: str, typ: PtoType, **more: Any) -> None:
        """Emit `v = code` and bind the result of `op` to it."""
        var = self.emit.name()
        self.emit.line(f"{var} = {code}")
        self.define(op, op.results[0], Scalar(var, typ, **more))

    def use(self, space: str, end: int) -> None:
        """Note the high-water mark of a memory space."""
        self.peak[space] = max(self.peak.get(space, 0), end)

    # ---- the whole

    def build(self) -> Kernel:
        """Compile the function."""
        from .control import block

        header = ["def kernel(ag, A, S):", "    n = ag.counts"]
        if self.shadow is not None:
            header.append("    cells = INIT.copy()")
        if self.variant.log:
            header.append("    log = ag.trace.append")
        header += self._params()
        block(self, self.func.body.ops)
        if self.yields:
            self.emit.line("if False:")
            self.emit.line("    yield")
        source = self.emit.source(header)
        space = self.emit.space
        if self.shadow is not None:
            space["INIT"] = self.shadow.initial()
            self.begin.append(self.shadow.begin)
        exec(_code(source, f"<{self.file}:{self.func.name}>"), space)  # our own source
        return Kernel(
            self.func.name,
            "aiv" if self.func.kind == "vector" else "aic",
            self.file,
            space["kernel"],
            self.yields,
            self.sites,
            self.shadow,
            self.scan.pipes,
            list(self.func.params),
            self.peak,
            self.memory,
            self.emit.blocks,
            source,
            "pto.syncall" in self.scan.names,
            self.begin,
        )

    def _params(self) -> list[str]:
        lines, tensors, scalars = [], 0, 0
        for name, typ in self.func.params:
            var = self.emit.name("a")
            if isinstance(typ, PtrT):
                lines.append(f"    {var} = A[{tensors}]")
                self.env[name] = Pointer(var, typ)
                tensors += 1
            elif name in SPECIAL:
                lines.append(f"    {var} = {SPECIAL[name]}")
                self.env[name] = Scalar(var, typ)
            else:
                lines.append(f"    {var} = S[{scalars}]")
                self.env[name] = Scalar(var, typ)
                scalars += 1
        return lines


def place_of(info: SiteInfo, kernel: str, file: str, ag: Any) -> Site:
    """The place of an operation as executed by agent `ag` (None: nobody in particular)."""
    if ag is None:
        return Site(kernel, info.op, file, info.line, info.loc)
    lane = ag.lane if ag.kind == "aiv" else None
    return Site(kernel, info.op, file, info.line, info.loc, ag.kind, lane, ag.block, ag.task)


def build(func: Func, module: Module, memory: CoreMemory, variant: Variant) -> Kernel:
    """Compile `func` for the core that owns `memory`."""
    return Builder(func, module, memory, variant).build()
