"""Accesses to global memory: views, loads, stores, scalar access, gather and scatter by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..findings import FindingKind
from ..machine.bind import Part
from ..machine.dtypes import numpy_type
from ..machine.gm import GmArg, GmView, view_of
from ..machine.numbers import scalar_of
from ..measure.cost import Cost
from ..text.nodes import Op
from ..text.types import PartT, PtoType, PtrT, ScalarT, ViewT, itemsize
from . import transfers
from .handles import teller
from .tileops import emit_transition
from .values import Partition, Pointer, Scalar, TensorView, TileValue

if TYPE_CHECKING:
    from .builder import Builder


def pointer(k: Builder, op: Op, name: str) -> Pointer:
    """`%name`, which must be a pointer."""
    found = k.lookup(op, name)
    if not isinstance(found, Pointer):
        k.fail(op, f"%{name} must be a pointer to global memory")
    return found


def _tensor_view(k: Builder, op: Op) -> None:
    source, typ = pointer(k, op, op.ins[0]), op.out_types[0]
    assert isinstance(typ, ViewT)
    assert isinstance(source.type, PtrT)
    if typ.dtype != source.type.dtype:
        k.fail(op, f"%{op.ins[0]} points at {source.type.dtype}, the view is of {typ.dtype}")
    dtype = numpy_type(typ.dtype)
    shape = [s.code for s in k.wholes(op, "shape")]
    strides = [s.code for s in k.wholes(op, "strides")]
    var = k.emit.name("w")

    def make(arg: GmArg, extents: tuple[int, ...], steps: tuple[int, ...]) -> GmView:
        return view_of(arg, extents, steps, dtype)

    call = k.emit.bind("view", guarded_value(k, op, make))
    k.emit.line(f"{var} = {call}({source.code}, ({', '.join(shape)},), ({', '.join(strides)},))")
    k.define(op, op.results[0], TensorView(var, typ))


def guarded_value(k: Builder, op: Op, run: Callable[..., Any]) -> Callable[..., Any]:
    """`run` with the place added to what it refuses."""
    from ..findings import DeviceError
    from ..machine.bind import BindError

    file, line, name = k.file, op.line, op.name

    def checked(*args: Any) -> Any:
        try:
            return run(*args)
        except BindError as exc:
            raise DeviceError(f"{name}: {exc}", file=file, line=line) from None

    return checked


def _partition(k: Builder, op: Op) -> None:
    view, typ = k.lookup(op, op.ins[0]), op.out_types[0]
    if not isinstance(view, TensorView):
        k.fail(op, f"%{op.ins[0]} is no tensor view")
    assert isinstance(typ, PartT)
    offsets = k.wholes(op, "offsets")
    sizes = k.wholes(op, "sizes")
    for given, stated in zip(sizes, typ.shape, strict=True):
        if stated is not None and given.constant and given.value != stated:
            k.fail(op, f"the size {given.value} contradicts the type {typ}")
    k.define(op, op.results[0], Partition(view, offsets, sizes, typ))


def partition_of(k: Builder, op: Op, name: str, typ: Any) -> Partition:
    """`%name`, which must be a partition view of the stated type."""
    found = k.lookup(op, name)
    if not isinstance(found, Partition) or found.type != typ:
        k.fail(op, f"%{name} must be a window of type {typ}, it is {found.type}")
    return found


class Window:
    """Source pieces of one window access."""

    def __init__(self, k: Builder, op: Op, part: Partition) -> None:
        self.view = part.view.code
        self.offsets = [o.code for o in part.offsets]
        self.sizes = [s.code for s in part.sizes]
        self.fixed: tuple[int, ...] | None = None
        if all(s.constant for s in part.sizes):
            self.fixed = tuple(int(s.value) for s in part.sizes)
        self.clamped = [o.clamped for o in part.offsets]
        ends = [self._end(o, s) for o, s in zip(part.offsets, part.sizes, strict=True)]
        self.ends = ends
        self.index = ", ".join(f"{o}:{e}" for o, e in zip(self.offsets, ends, strict=True))
        self.tests = self._tests(part, ends)

    @staticmethod
    def _end(o: Scalar, s: Scalar) -> str:
        return str(o.value + s.value) if o.constant and s.constant else f"{o.code} + {s.code}"

    def _tests(self, part: Partition, ends: list[str]) -> str:
        limits = ["n0", "n1"] if len(ends) <= 2 else [f"limits[{i}]" for i in range(len(ends))]
        tests = [f"{e} > {self.view}.{n}" for e, n in zip(ends, limits, strict=False)]
        tests += [f"{o.code} < 0" for o in part.offsets if not (o.constant and o.value >= 0) and o.clamped is None]
        tests += [f"{s.code} < 0" for s in part.sizes if not s.constant]
        return " or ".join(tests)

    def tuples(self) -> str:
        """Source of (offsets, sizes)."""
        return f"({', '.join(self.offsets)},), ({', '.join(self.sizes)},)"


def _clamp_check(k: Builder, op: Op, w: Window) -> None:
    """Offsets are clamped to 0 in the text; a negative one is a fault that the clamp hides."""
    if not k.variant.log:
        return
    for code in [c for c in w.clamped if c is not None]:
        k.emit.line(f"if {code} < 0:")
        with k.emit.indented():
            k.report(op, FindingKind.OUT_OF_BOUNDS, "the offset of the window is negative, a clamp hides it")


def _note(k: Builder, site: int, w: Window, reads: bool, writes: bool) -> None:
    """Emit what the sanitizers want to know of an access."""
    if k.variant.explore:
        k.emit.line(f"if ag.stop({site}): yield")
    if not k.variant.log:
        return
    k.emit.line(f"log(({site}, {w.view}, {w.tuples()}))")
    if reads:
        k.emit.line(f"if {w.view}.marks is not None: ag.watch_load({site}, {w.view}, {w.tuples()})")
    if writes:
        k.emit.line(f"if {w.view}.marks is not None: {w.view}.marks[{w.index}] = True")
        k.emit.line(f"if {w.view}.guard: ag.watch_store({site}, {w.view})")


def _bytes(sizes: tuple[int, ...] | None, dtype: str) -> int:
    total = itemsize(dtype)
    for n in sizes or (0,):
        total *= n
    return total


def _load(k: Builder, op: Op) -> None:
    part = partition_of(k, op, op.ins[0], op.types[0])
    dst = k.tile(op, op.outs[0], op.out_types[0])
    if dst.type.loc not in ("vec", "mat"):
        k.fail(op, f"loads go to vec or mat, not to {dst.type.loc}")
    w = Window(k, op, part)
    cost = Cost("load", 0, 0, (("gm", _bytes(w.fixed, part.dtype)),), (
        (dst.type.loc, _bytes(w.fixed, dst.type.dtype)),), "tload")  # fmt: skip
    info = k.site(op, "load", cost if w.fixed is not None else None)
    info.reads = (("gm", itemsize(part.dtype)),)
    info.writes = ((dst.type.space, itemsize(dst.type.dtype)),)
    _clamp_check(k, op, w)
    k.emit.line(f"if {w.tests}:")
    with k.emit.indented():
        bad = transfers.BadWindow(teller(k, op), "load")
        k.emit.line(f"{k.emit.bind('bad', bad.load)}(ag, {w.view}, {w.tuples()}, {tile_source(k, dst)})")
    k.emit.line("else:")
    with k.emit.indented():
        _note(k, info.id, w, reads=True, writes=False)
        _emit_load(k, op, info.id, w, part, dst)
    if w.fixed is None:
        k.emit.line(f"ag.moved({info.id}, {' * '.join(f'max({s}, 0)' for s in w.sizes)})")
    _load_shadow(k, op, info.id, w, dst)


def tile_source(k: Builder, value: TileValue) -> str:
    """Source of the tile object."""
    return value.code or k.emit.bind("T", value.tile)


def _emit_load(k: Builder, op: Op, site: int, w: Window, part: Partition, dst: TileValue) -> None:
    source = f"{w.view}.arr[{w.index}]"
    if dst.tile is not None and w.fixed is not None:
        tile, fixed = dst.tile, w.fixed
        run = guarded_value(k, op, lambda: transfers.loader(tile, fixed, part.dtype))()
        k.emit.line(f"{k.emit.bind('ld', run)}({source})")
        return
    loads = transfers.Loads(part.dtype)
    k.emit.line(f"{k.emit.bind('ld', guarded_value(k, op, loads))}({tile_source(k, dst)}, {source})")


def _load_shadow(k: Builder, op: Op, site: int, w: Window, dst: TileValue) -> None:
    if k.shadow is None:
        return
    if dst.tile is not None and w.fixed is not None:
        rows, cols = transfers.box_of(dst.tile, w.fixed)
        parts = [Part(dst.tile, rows, cols)] if rows and cols else []
        if parts:
            emit_transition(k, k.shadow.transition(site, writes=parts))
        return
    moves = transfers.ShadowLoad(k.shadow, site)
    k.emit.line(f"{k.emit.bind('sh', moves)}(ag, cells, {tile_source(k, dst)}, ({', '.join(w.sizes)},))")


def _store(k: Builder, op: Op) -> None:
    part = partition_of(k, op, op.outs[0], op.out_types[0])
    src = k.tile(op, op.ins[0], op.types[0])
    if src.type.loc not in ("vec", "acc"):
        k.fail(op, f"stores come from vec or acc, not from {src.type.loc}")
    atomic = _atomic(k, op)
    w = Window(k, op, part)
    cost = Cost("store", 0, 0, ((src.type.loc, _bytes(w.fixed, src.type.dtype)),), (
        ("gm", _bytes(w.fixed, part.dtype)),), "tstore")  # fmt: skip
    info = k.site(op, "store", cost if w.fixed is not None else None)
    info.reads = ((src.type.space, itemsize(src.type.dtype)),)
    info.writes = (("gm", itemsize(part.dtype)),)
    info.extra["atomic"] = atomic
    info.extra["write"] = True
    _clamp_check(k, op, w)
    _store_checks(k, op, info.id, w, src)
    k.emit.line(f"if {w.tests}:")
    with k.emit.indented():
        bad = transfers.BadWindow(teller(k, op), "store")
        k.emit.line(f"{k.emit.bind('bad', bad.store)}(ag, {w.view}, {w.tuples()}, {tile_source(k, src)})")
    k.emit.line("else:")
    with k.emit.indented():
        _note(k, info.id, w, reads=atomic, writes=True)
        target = f"{w.view}.arr[{w.index}]"
        if src.tile is not None and w.fixed is not None:
            tile, fixed = src.tile, w.fixed
            run = guarded_value(k, op, lambda: transfers.storer(tile, fixed, part.dtype, atomic))()
            k.emit.line(f"{k.emit.bind('st', run)}({target})")
        else:
            stores = transfers.Stores(part.dtype, atomic)
            k.emit.line(f"{k.emit.bind('st', guarded_value(k, op, stores))}({tile_source(k, src)}, {target})")
        if k.variant.log and k.func.kind == "vector":
            k.emit.line(f"if ag.twin: ag.keep({info.id}, {w.view}, {w.tuples()})")
    if w.fixed is None:
        k.emit.line(f"ag.moved({info.id}, {' * '.join(f'max({s}, 0)' for s in w.sizes)})")


def _atomic(k: Builder, op: Op) -> bool:
    kind = op.attrs.get("atomicType")
    if kind not in (None, "atomic_add", "atomic_none"):
        k.fail(op, f"unknown atomicType {kind!r}; known is atomic_add")
    return kind == "atomic_add"


def _store_checks(k: Builder, op: Op, site: int, w: Window, src: TileValue) -> None:
    """The source must be valid and defined where it is stored."""
    if k.shadow is None and not k.variant.log:
        return
    if src.tile is not None and w.fixed is not None:
        rows, cols = transfers.box_of(src.tile, w.fixed)
        if rows > src.tile.vr or cols > src.tile.vc:
            k.report(op, FindingKind.OUTSIDE_VALID, transfers.outside(rows, cols, src.tile))
        elif k.shadow is not None and rows and cols:
            emit_transition(k, k.shadow.transition(site, reads=[Part(src.tile, rows, cols)]))
        return
    checks = transfers.ShadowStore(k.shadow, site, teller(k, op))
    cells = "cells" if k.shadow is not None else "None"
    k.emit.line(f"{k.emit.bind('sh', checks)}(ag, {cells}, {tile_source(k, src)}, ({', '.join(w.sizes)},))")


# ---- scalars


class ScalarAccess:
    """`load_scalar` and `store_scalar`: one element of an argument by its number."""

    def __init__(self, site: int, dtype: str, tell: Any, log: bool, explore: bool) -> None:
        self.site, self.dtype, self.tell, self.log = site, numpy_type(dtype), tell, log

    def _view(self, ag: Any, arg: GmArg, index: int) -> tuple[GmView, int] | None:
        first, last = arg.span()
        if not 0 <= index < last - first:
            name = arg.root.name
            self.tell(
                ag,
                FindingKind.OUT_OF_BOUNDS,
                f"element {index} leaves the argument {name!r} of {last - first} element(s)",
            )
            if last == first:
                return None
            index = min(max(index, 0), last - first - 1)
        return view_of(arg, (last - first,), (1,), self.dtype), index

    def get(self, ag: Any, arg: GmArg, index: int) -> Any:
        """The element as a Python number."""
        spot = self._view(ag, arg, index)
        if spot is None:
            return 0
        view, at = spot
        if self.log:
            ag.trace.append((self.site, view, (at,), (1,)))
            if view.marks is not None:
                ag.watch_load(self.site, view, (at,), (1,))
        one = np.asarray(view.arr[at])
        return float(one.astype(np.float32)) if one.dtype.kind not in "biu" else one.item()

    def set(self, ag: Any, arg: GmArg, index: int, value: Any) -> None:
        """Store one element."""
        spot = self._view(ag, arg, index)
        if spot is None:
            return
        view, at = spot
        if self.log:
            ag.trace.append((self.site, view, (at,), (1,)))
            if view.marks is not None:
                view.marks[at] = True
            if view.guard:
                ag.watch_store(self.site, view)
        view.arr[at] = scalar_of(value, self.dtype)
        if self.log and ag.twin:
            ag.keep(self.site, view, (at,), (1,))


def _scalar_access(k: Builder, op: Op, arg: Pointer, write: bool) -> ScalarAccess:
    assert isinstance(arg.type, PtrT)
    size = itemsize(arg.type.dtype)
    moved = (("gm", size),)
    info = k.site(op, "scalar", Cost("scalar", 1, 0, () if write else moved, moved if write else (), op.name))
    if write:
        info.extra["write"] = True
    if k.variant.explore:
        k.emit.line(f"if ag.stop({info.id}): yield")
    return ScalarAccess(info.id, arg.type.dtype, teller(k, op), k.variant.log, k.variant.explore)


def _element_type(k: Builder, op: Op, arg: Pointer, stated: PtoType, scalar: PtoType) -> None:
    """The stated pointer type must be the pointer's, and the number of its element type."""
    assert isinstance(arg.type, PtrT)
    if stated != arg.type:
        k.fail(op, f"the pointer is used as {stated}, but has type {arg.type}")
    if scalar != ScalarT(arg.type.dtype):
        k.fail(op, f"an element of {arg.type} is no {scalar}")


def _load_scalar(k: Builder, op: Op) -> None:
    arg, index = pointer(k, op, op.ins[0]), k.whole(op, op.groups["index"][0])
    _element_type(k, op, arg, op.types[0], op.out_types[0])
    access = _scalar_access(k, op, arg, False)
    call = k.emit.bind("lds", guarded_value(k, op, access.get))
    k.assign(op, f"{call}(ag, {arg.code}, {index.code})", op.out_types[0])


def _store_scalar(k: Builder, op: Op) -> None:
    value, arg = k.scalar(op, op.ins[0]), pointer(k, op, op.ins[1])
    index = k.whole(op, op.groups["index"][0])
    _element_type(k, op, arg, op.types[0], value.type)
    access = _scalar_access(k, op, arg, True)
    call = k.emit.bind("sts", guarded_value(k, op, access.set))
    k.emit.line(f"{call}(ag, {arg.code}, {index.code}, {value.code})")


def _addptr(k: Builder, op: Op) -> None:
    arg, offset = pointer(k, op, op.ins[0]), k.whole(op, op.ins[1])
    if not op.types[0] == op.out_types[0] == arg.type:
        k.fail(op, f"a pointer of type {arg.type} cannot be used as {op.types[0]} or become {op.out_types[0]}")
    var = k.emit.name("p")
    k.emit.line(f"{var} = {arg.code}.shifted({offset.code})")
    k.define(op, op.results[0], Pointer(var, arg.type))


# ---- by index


def _mgather(k: Builder, op: Op) -> None:
    view = k.lookup(op, op.ins[0])
    if not isinstance(view, TensorView):
        k.fail(op, f"%{op.ins[0]} is no tensor view")
    index, out = k.tile(op, op.ins[1], op.types[1]), k.tile(op, op.outs[0], op.out_types[0])
    info = k.site(op, "load")
    info.reads = (("gm", itemsize(view.type.dtype)),)  # type: ignore[union-attr]
    info.writes = ((out.type.space, itemsize(out.type.dtype)),)
    made = transfers.IndexedLoad(k.shadow, info.id, op.attrs, teller(k, op), k.variant.log)
    cells = "cells" if k.shadow is not None else "None"
    call = k.emit.bind("mg", guarded_value(k, op, made))
    k.emit.line(f"{call}(ag, {cells}, {view.code}, {tile_source(k, index)}, {tile_source(k, out)})")


def _mscatter(k: Builder, op: Op) -> None:
    part = partition_of(k, op, op.outs[0], op.out_types[0])
    src, index = k.tile(op, op.ins[0], op.types[0]), k.tile(op, op.ins[1], op.types[1])
    info = k.site(op, "store")
    info.extra["write"] = True
    info.reads = ((src.type.space, itemsize(src.type.dtype)), (index.type.space, itemsize(index.type.dtype)))
    info.writes = (("gm", itemsize(part.dtype)),)
    w = Window(k, op, part)
    made = transfers.IndexedStore(k.shadow, info.id, teller(k, op), k.variant.log)
    cells = "cells" if k.shadow is not None else "None"
    call = k.emit.bind("ms", guarded_value(k, op, made))
    k.emit.line(f"{call}(ag, {cells}, {part.view.code}, {w.tuples()}, {tile_source(k, src)}, {tile_source(k, index)})")


HANDLERS = {
    "pto.make_tensor_view": _tensor_view,
    "pto.partition_view": _partition,
    "pto.tload": _load,
    "pto.tstore": _store,
    "pto.load_scalar": _load_scalar,
    "pto.store_scalar": _store_scalar,
    "pto.addptr": _addptr,
    "pto.mgather": _mgather,
    "pto.mscatter": _mscatter,
}
