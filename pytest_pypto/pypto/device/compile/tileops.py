"""Operations on tiles: binding, and the shadow transitions around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..findings import FindingKind
from ..machine.bind import DYNAMIC, Bind, BindError, BoundsError, OpSpec, Part, Run
from ..machine.dtypes import is_small_float
from ..machine.numbers import scalar_of
from ..machine.ops import TILE_OPS
from ..machine.tiles import Tile
from ..measure.cost import Cost, cost_of
from ..text.nodes import Op
from ..text.types import ScalarT, TileT, itemsize
from .handles import Teller, teller
from .values import Scalar, TileValue

if TYPE_CHECKING:
    from ..checks.shadow import Transition
    from .builder import Builder

_OFFSETS = ("textract", "tinsert")
_WHOLE = frozenset(["textract", "tinsert", "tci", "ttri", "trandom", "tmrgsort"])
"""Operations whose scalars are offsets, starts, counts or seeds."""
_CUBE_PLACES = {"acc": ("acc",), "left": ("left",), "right": ("right",), "bias": ("bias", "mat")}


def tile_op(k: Builder, op: Op) -> None:
    """Emit `pto.<name> ins(...) outs(...)`."""
    name = op.name.removeprefix("pto.")
    spec = TILE_OPS[name]
    values = [_operand(k, op, n, t) for n, t in zip(op.ins, op.types, strict=True)]
    outs = [_operand(k, op, n, t) for n, t in zip(op.outs, op.out_types, strict=True) if isinstance(t, TileT)]
    if not outs or not all(isinstance(o, TileValue) for o in outs):
        k.fail(op, "the result must be a tile")
    check_places(k, op, name, spec, values, outs)
    if name in _WHOLE:
        for scalar in (n for n, v in zip(op.ins, values, strict=True) if isinstance(v, Scalar)):
            k.whole(op, scalar)
    moving = [v for v in values if isinstance(v, Scalar) and not v.constant]
    dynamic_tiles = any(isinstance(v, TileValue) and v.tile is None for v in (*values, *outs))
    if dynamic_tiles or (name in _OFFSETS and moving):
        _dynamic(k, op, name, spec, values, outs)
        return
    b = Bind(name, [_fixed(v) for v in values], [_fixed(o) for o in outs], op.attrs)
    try:
        run = spec.make(b)
        cost = cost_of(spec, b)
    except BoundsError as exc:
        k.report(op, FindingKind.OUT_OF_BOUNDS, str(exc))
        return
    except BindError as exc:
        k.fail(op, str(exc))
    info = k.site(op, spec.unit, cost)
    if k.shadow is not None:
        emit_transition(k, _transition(k.shadow, info.id, spec, b, name))
    if name in _CHECKED:
        call = k.emit.bind("op", guarded(k, op, lambda ag, *args: run(*args)))
        k.emit.line(f"{call}({', '.join(['ag', *(v.code for v in moving)])})")
        return
    k.emit.line(f"{k.emit.bind('op', run)}({', '.join(v.code for v in moving)})")


_CHECKED = frozenset(["tgather", "tgatherb", "tscatter", "tmrgsort"])
"""Operations whose data can point outside a tile."""


def guarded(k: Builder, op: Op, run: Run) -> Run:
    """`run(agent, ...)` with the place added to what it refuses; data that point outside a tile are reported."""
    from ..findings import DeviceError

    file, line, name, tell = k.file, op.line, op.name, teller(k, op)

    def checked(ag: Any, *args: Any) -> None:
        try:
            run(ag, *args)
        except BoundsError as exc:
            tell(ag, FindingKind.OUT_OF_BOUNDS, str(exc))
        except BindError as exc:
            raise DeviceError(f"{name}: {exc}", file=file, line=line) from None

    return checked


def _operand(k: Builder, op: Op, name: str, typ: Any) -> Scalar | TileValue:
    if isinstance(typ, TileT):
        return k.tile(op, name, typ)
    found = k.scalar(op, name)
    if isinstance(typ, ScalarT) and found.type != typ:
        k.fail(op, f"%{name} is used as {typ}, but has type {found.type}")
    return found


def _fixed(value: Any) -> Any:
    if isinstance(value, TileValue):
        return value.tile
    return value.value if value.constant else DYNAMIC


def check_places(k: Builder, op: Op, name: str, spec: OpSpec, values: Sequence[Any], outs: Sequence[Any]) -> None:
    """Refuse operands in a memory that the engine does not reach."""
    tiles = [v for v in values if isinstance(v, TileValue)]
    if spec.unit == "cube":
        wanted = _cube_spaces(name, len(tiles))
        for i, (tile, spaces) in enumerate(zip(tiles, wanted, strict=False)):
            if tile.type.loc not in spaces:
                k.fail(op, f"operand {i} must lie in {' or '.join(spaces)}, %{op.ins[i]} lies in {tile.type.loc}")
        if outs[0].type.loc != "acc":
            k.fail(op, f"the product must lie in acc, %{op.outs[0]} lies in {outs[0].type.loc}")
    elif spec.unit == "vector" and name not in ("ttrans", "texpands"):
        for tile, label in [*zip(tiles, op.ins, strict=False), *zip(outs, op.outs, strict=False)]:
            if tile.type.loc != "vec":
                k.fail(op, f"vector operations work in vec, but a tile of this one (%{label}) lies in {tile.type.loc}")


def _cube_spaces(name: str, count: int) -> list[tuple[str, ...]]:
    if ".mx" in name:
        return [("acc", "left", "right", "scaling", "bias", "mat")] * count
    order = {"": ("left", "right"), "acc": ("acc", "left", "right"), "bias": ("left", "right", "bias")}
    return [_CUBE_PLACES[p] for p in order[name.partition(".")[2]]]


def _transition(shadow: Any, site: int, spec: OpSpec, b: Bind, name: str) -> Transition:
    writes = spec.written(b)
    scratch = [t for t in spec.clobbered(b) if t.vr and t.vc and all(t is not p.tile for p in writes)]
    made: Transition = shadow.transition(
        site,
        reads=spec.read(b),
        writes=writes,
        scratch=scratch if writes else [],
        copies=spec.copies,
        keeps=spec.keeps,
        merges=spec.merges,
        exempt=name in ("tfillpad", "tfillpad_expand"),
        turned=name == "ttrans",
    )
    return made


def emit_transition(k: Builder, t: Transition) -> None:
    """Emit the look-up of a transition whose tiles are fixed."""
    emit, names = k.emit, [f"cells[{i}]" for i in t.outs]
    target = ", ".join(names)
    if t.constant and not t.outs:
        return
    if t.constant:
        # the first execution in a run still has to be noted, so the look-up stays, with one key
        emit.line(f"k = {emit.bind('s', t.seen)}.get(None)")
        emit.line(f"if k is None: k = {emit.bind('x', t.slow)}(None, ag)")
    else:
        key = f"cells[{t.keys[0]}]" if len(t.keys) == 1 else f"{emit.bind('g', t.get)}(cells)"
        emit.line(f"q = {key}")
        emit.line(f"k = {emit.bind('s', t.seen)}.get(q)")
        emit.line(f"if k is None: k = {emit.bind('x', t.slow)}(q, ag)")
    if names:
        emit.line(f"{target} = k")


@dataclass
class Bound:
    """One combination of tiles of a dynamic operation."""

    run: Run
    transition: Transition | None
    cost: Cost


class DynamicOp:
    """An operation whose tiles (or offsets) come at run time; combinations are bound once and remembered."""

    def __init__(
        self,
        spec: OpSpec,
        name: str,
        attrs: Any,
        template: Sequence[Any],
        ins: int,
        shadow: Any,
        site: int,
        tell: Teller,
    ) -> None:
        self.spec, self.name, self.attrs = spec, name, attrs
        self.template, self.count = list(template), ins
        self.shadow, self.site, self.tell = shadow, site, tell
        self.known: dict[Any, Bound] = {}

    def bound(self, ag: Any, key: tuple[Any, ...]) -> Bound | None:
        """The combination of run-time tiles `key`; None when it cannot run (reported)."""
        rest = iter(key)
        values = [next(rest) if v is None else v for v in self.template]
        b = Bind(self.name, values[: self.count], values[self.count :], self.attrs)
        try:
            run, cost = self.spec.make(b), cost_of(self.spec, b)
            shadow = self.shadow
            move = None if shadow is None else _transition(shadow, self.site, self.spec, b, self.name)
        except BoundsError as exc:
            # not remembered: every run has to report it anew
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, str(exc))
            return None
        if len(self.known) > 8192:
            self.known.clear()
        found = self.known[key] = Bound(run, move, cost)
        return found

    def plain(self, ag: Any, key: tuple[Any, ...], *scalars: Any) -> None:
        """Run without shadow."""
        found = self.known.get(key) or self.bound(ag, key)
        if found is not None:
            extra = ag.extra
            extra[found.cost] = extra.get(found.cost, 0) + 1
            found.run(*scalars)

    def checked(self, ag: Any, cells: Any, key: tuple[Any, ...], *scalars: Any) -> None:
        """Run with shadow."""
        found = self.known.get(key) or self.bound(ag, key)
        if found is not None:
            extra = ag.extra
            extra[found.cost] = extra.get(found.cost, 0) + 1
            assert found.transition is not None
            found.transition.apply(cells, ag)
            found.run(*scalars)


def _dynamic(k: Builder, op: Op, name: str, spec: OpSpec, values: Sequence[Any], outs: Sequence[Any]) -> None:
    key_scalars = name in _OFFSETS
    template: list[Any] = []
    keys: list[str] = []
    scalars: list[str] = []
    for v in (*values, *outs):
        if isinstance(v, TileValue):
            template.append(v.tile)
            keys += [] if v.tile is not None else [v.code or ""]
        elif v.constant:
            template.append(v.value)
        elif key_scalars:
            template.append(None)
            keys.append(v.code)
        else:
            template.append(DYNAMIC)
            scalars.append(v.code)
    info = k.site(op, spec.unit)
    made = DynamicOp(spec, name, op.attrs, template, len(values), k.shadow, info.id, teller(k, op))
    args = ", ".join(["ag", *(["cells"] if k.shadow is not None else []), f"({', '.join(keys)},)", *scalars])
    call: Callable[..., None] = made.checked if k.shadow is not None else made.plain
    k.emit.line(f"{k.emit.bind('dop', guarded(k, op, call))}({args})")


# ---- single elements


class ElementAccess:
    """`tgetval` and `tsetval`: one element of a tile by its row-major number."""

    def __init__(self, shadow: Any, site: int, tell: Teller) -> None:
        self.shadow, self.site, self.tell = shadow, site, tell
        self.known: dict[Any, Any] = {}

    def _spot(self, ag: Any, tile: Tile, flat: int) -> tuple[int, int]:
        rows, cols = tile.type.rows, tile.type.cols
        if not 0 <= flat < rows * cols:
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, f"element {flat} leaves a tile of {rows}x{cols}")
            flat = min(max(flat, 0), rows * cols - 1)
        return divmod(flat, cols)

    def get(self, ag: Any, cells: Any, tile: Tile, flat: int) -> Any:
        """The element as a Python number."""
        row, col = self._spot(ag, tile, flat)
        if cells is not None:
            self._note(ag, cells, tile, row, col, False)
        one = np.asarray(self._read(tile, row, col))
        return (one.astype(np.float32) if is_small_float(tile.dtype) else one).item()

    def _read(self, tile: Tile, row: int, col: int) -> Any:
        if tile.view is not None:
            return tile.view[row, col]
        return tile.reader(tile.type.rows, tile.type.cols)()[row, col]

    def set(self, ag: Any, cells: Any, tile: Tile, flat: int, value: Any) -> None:
        """Store one element."""
        row, col = self._spot(ag, tile, flat)
        if cells is not None:
            self._note(ag, cells, tile, row, col, True)
        one = scalar_of(value, tile.dtype)
        if tile.view is not None:
            tile.view[row, col] = one
        else:
            whole = np.array(tile.reader(tile.type.rows, tile.type.cols)())
            whole[row, col] = one
            tile.writer(tile.type.rows, tile.type.cols)(whole)

    def _note(self, ag: Any, cells: Any, tile: Tile, row: int, col: int, write: bool) -> None:
        key = (tile, row, col)
        found = self.known.get(key)
        if found is None:
            parts = [Part(tile, 1, 1, row, col)]
            what = {"writes": parts, "keeps": True} if write else {"reads": parts}
            found = self.known[key] = self.shadow.transition(self.site, **what)
        found.apply(cells, ag)


def _element(k: Builder, op: Op, tile: TileValue, write: bool) -> tuple[ElementAccess, str, str]:
    moved = ((tile.type.space, itemsize(tile.type.dtype)),)
    cost = Cost("scalar", 1, 0, () if write else moved, moved if write else (), op.name.removeprefix("pto."))
    info = k.site(op, "scalar", cost)
    access = ElementAccess(k.shadow, info.id, teller(k, op))
    source = tile.code or k.emit.bind("T", tile.tile)
    return access, source, "cells" if k.shadow is not None else "None"


def get_value(k: Builder, op: Op) -> None:
    """`%v = pto.tgetval ins(%t, %flat) outs : T`"""
    tile = k.tile(op, op.ins[0], op.types[0])
    flat = k.whole(op, op.ins[1])
    access, source, cells = _element(k, op, tile, write=False)
    k.assign(op, f"{k.emit.bind('get', access.get)}(ag, {cells}, {source}, {flat.code})", op.out_types[0])


def set_value(k: Builder, op: Op) -> None:
    """`pto.tsetval ins(%flat, %v) outs(%t)`"""
    tile = k.tile(op, op.outs[0], op.out_types[0])
    flat, value = k.whole(op, op.ins[0]), k.scalar(op, op.ins[1])
    access, source, cells = _element(k, op, tile, write=True)
    k.emit.line(f"{k.emit.bind('set', access.set)}(ag, {cells}, {source}, {flat.code}, {value.code})")


def scale_address(k: Builder, op: Op) -> None:
    """`pto.tget_scale_addr ins(%scale, %data) outs(%scale)`: says which factor a scale tile belongs to.

    The scale keeps its bytes, so nothing is executed; the two must belong to the same side of the product.
    """
    scale, *given = [k.tile(op, n, t) for n, t in zip((*op.outs, *op.ins), (*op.out_types, *op.types), strict=True)]
    if scale.type.loc != "scaling":
        k.fail(op, f"binds a scale tile, %{op.outs[0]} lies in {scale.type.loc}")
    for name, tile in zip(op.ins, given, strict=True):
        side = scale.type.space.removeprefix("scaling_")
        same = tile.type.loc == "scaling"
        if same and (tile.type.space != scale.type.space or not _same_place(tile, scale)):
            k.fail(op, f"%{name} and %{op.outs[0]} must be the same scale tile")
        if not same and tile.type.loc not in (side, "mat"):
            k.fail(op, f"the scale belongs to the {side} factor, %{name} lies in {tile.type.loc}")
    k.site(op, "scalar")


def _same_place(a: TileValue, b: TileValue) -> bool:
    """True when two handles start at one address, or are the same run-time handle."""
    return a.code == b.code if a.tile is None or b.tile is None else a.tile.addr == b.tile.addr
