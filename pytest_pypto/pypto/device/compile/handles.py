"""Tile handles: allocation, valid extents, windows, reinterpretation, slots of multi buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..findings import Finding, FindingKind
from ..machine.bind import BoundsError
from ..machine.tiles import Tile
from ..text.nodes import Op
from ..text.types import MultiT, TileT
from .values import MultiValue, Scalar, TileValue

if TYPE_CHECKING:
    from .builder import Builder

_MOST_BYTES = 1 << 26
"""Handles beyond the capacity get memory, so that the run goes on with the finding; up to this end."""

Teller = Callable[[Any, FindingKind, str], None]


def teller(k: Builder, op: Op) -> Teller:
    """A function that reports a fault at `op`; without sanitizers it stops the run."""
    from .builder import place_of

    info, name, file = k.site(op), k.func.name, k.file

    def tell(ag: Any, kind: FindingKind, message: str) -> None:
        ag.report(Finding(kind, "error", message, place_of(info, name, file, ag)))

    return tell


class Retagger:
    """Tiles with run-time valid extents, one object per combination; extents outside the box are a fault."""

    def __init__(self, tell: Teller) -> None:
        self.tell = tell
        self.known: dict[Any, Tile] = {}

    def __call__(self, ag: Any, tile: Tile, vr: int, vc: int) -> Tile:
        key = (tile, vr, vc)
        found = self.known.get(key)
        if found is None:
            rows, cols = tile.type.rows, tile.type.cols
            if not (0 <= vr <= rows and 0 <= vc <= cols):
                # not remembered: every run has to report it anew
                self.tell(ag, FindingKind.OUT_OF_BOUNDS, f"valid extents {vr}x{vc} do not fit a tile of {rows}x{cols}")
                return tile.with_valid(min(max(vr, 0), rows), min(max(vc, 0), cols))
            found = self.known[key] = tile.with_valid(vr, vc)
        return found


class Windows:
    """Windows at run-time offsets, one object per combination; leaving the tile is a fault."""

    def __init__(self, typ: TileT, tell: Teller) -> None:
        self.type, self.tell = typ, tell
        self.known: dict[Any, Tile] = {}

    def __call__(self, ag: Any, tile: Tile, row: int, col: int, vr: int, vc: int) -> Tile:
        key = (tile, row, col, vr, vc)
        found = self.known.get(key)
        if found is not None:
            return found
        typ = self.type
        if not (0 <= vr <= typ.rows and 0 <= vc <= typ.cols):
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, f"valid extents {vr}x{vc} do not fit {typ.rows}x{typ.cols}")
            vr, vc = min(max(vr, 0), typ.rows), min(max(vc, 0), typ.cols)
        try:
            found = tile.window(row, col, typ, vr, vc)
        except ValueError as exc:
            # not remembered: every run has to report it anew
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, str(exc))
            return self._inside(tile, row, col, vr, vc)
        self.known[key] = found
        return found

    def _inside(self, tile: Tile, row: int, col: int, vr: int, vc: int) -> Tile:
        typ = self.type
        row = min(max(row, 0), max(tile.type.rows - typ.rows, 0))
        col = min(max(col, 0), max(tile.type.cols - typ.cols, 0))
        try:
            return tile.window(row, col, typ, vr, vc)
        except ValueError as exc:
            raise BoundsError(str(exc)) from None


class Slots:
    """Tiles by address; another address is a fault."""

    def __init__(self, tiles: dict[int, Tile], tell: Teller) -> None:
        self.tiles, self.tell = tiles, tell

    def __call__(self, ag: Any, address: int) -> Tile:
        found = self.tiles.get(address)
        if found is None:
            known = ", ".join(map(str, sorted(self.tiles)))
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, f"the tile starts at byte {address}, which is no slot ({known})")
            found = next(iter(self.tiles.values()))
        return found


def base_tile(k: Builder, op: Op, typ: TileT, addr: int, vr: int, vc: int) -> Tile:
    """A tile at a fixed address of the core.

    A memory that the core does not have is an error of the text; a handle beyond the capacity a finding.
    """
    memory = k.memory.space(typ.space)
    if memory is None:
        k.fail(op, f"a {k.func.kind} kernel has no memory {typ.space!r}; it has {', '.join(k.memory.spaces)}")
    end, limit = addr + typ.nbytes, k.memory.platform.capacity.get(typ.space, 0)
    k.use(typ.space, end)
    if addr < 0:
        k.fail(op, f"the address {addr} of a tile is negative")
    if end > limit:
        message = (
            f"the tile takes bytes {addr}..{end - 1} of {typ.space}, which has {limit} on {k.memory.platform.name}"
        )
        if end > _MOST_BYTES:
            k.fail(op, message)
        k.report(op, FindingKind.OUT_OF_BOUNDS, message, space=typ.space, addresses=((addr, end),))
        memory = k.memory.grow(typ.space, end)
    if addr % _alignment(typ):
        k.report(
            op,
            FindingKind.OUT_OF_BOUNDS,
            f"the tile starts at byte {addr} of {typ.space}, which is no multiple of {_alignment(typ)}",
            space=typ.space,
            addresses=((addr, end),),
        )
    return Tile.at(memory, addr, typ, vr, vc, op.line)


def _alignment(typ: TileT) -> int:
    from ..text.types import itemsize

    return itemsize(typ.dtype)


def tile_type(k: Builder, op: Op) -> TileT:
    """The tile type that `op` gives."""
    typ = op.out_types[0]
    if not isinstance(typ, TileT):
        k.fail(op, f"gives a tile, not {typ}")
    return typ


def _alloc(k: Builder, op: Op) -> None:
    typ = tile_type(k, op)
    _, starts, _ = k.scan.storage[id(op)]
    vr, vc = (k.whole(op, op.groups[n][0]) for n in ("valid_row", "valid_col"))
    for addr in starts:
        _ring_check(k, op, typ, addr)
    if len(starts) > 1:
        _alloc_slots(k, op, typ, starts, (vr, vc))
        return
    fixed = vr.constant and vc.constant
    if fixed and not (0 <= vr.value <= typ.rows and 0 <= vc.value <= typ.cols):
        k.report(
            op,
            FindingKind.OUT_OF_BOUNDS,
            f"valid extents {vr.value}x{vc.value} do not fit a tile of {typ.rows}x{typ.cols}",
        )
    rows, cols = (min(max(v.value, 0), n) if fixed else n for v, n in ((vr, typ.rows), (vc, typ.cols)))
    tile = base_tile(k, op, typ, starts[0], rows, cols)
    put(k, op, TileValue(typ, tile), None if fixed else (vr, vc))


def _alloc_slots(k: Builder, op: Op, typ: TileT, starts: tuple[int, ...], valid: tuple[Scalar, Scalar]) -> None:
    """A tile whose address is one of a few, chosen at run time (slots of a declared buffer)."""
    tiles = {a: base_tile(k, op, typ, a, typ.rows, typ.cols) for a in starts}
    address = k.whole(op, op.groups["addr"][0])
    source = f"{k.emit.bind('slots', Slots(tiles, teller(k, op)))}(ag, {address.code})"
    put(k, op, TileValue(typ, None, source), valid)


def put(k: Builder, op: Op, value: TileValue, valid: tuple[Scalar, Scalar] | None) -> None:
    """Bind the result of `op` to a tile; it becomes a run-time handle when its valid extents can change."""
    name = op.results[0]
    if value.tile is not None and valid is None and name not in k.mutated:
        k.define(op, name, value)
        return
    var = k.emit.name("t")
    source = value.code or k.emit.bind("T", value.tile)
    if valid is None:
        k.emit.line(f"{var} = {source}")
    else:
        retag = k.emit.bind("retag", Retagger(teller(k, op)))
        k.emit.line(f"{var} = {retag}(ag, {source}, {valid[0].code}, {valid[1].code})")
    k.define(op, name, TileValue(value.type, None, var))


def _ring_check(k: Builder, op: Op, typ: TileT, addr: int) -> None:
    """A tile must not lie in the slots of a pipe."""
    for decl in k.scan.pipes.values():
        for way, base in decl.bases.items():
            mine = (way == "c2v") == (k.func.kind == "vector")
            space = "vec" if way == "c2v" else "mat"
            end = base + decl.local * decl.slot_size
            if mine and typ.loc == space and addr < end and base < addr + typ.nbytes:
                k.report(
                    op,
                    FindingKind.OVERLAP,
                    f"the tile takes bytes {addr}..{addr + typ.nbytes - 1} of {space}, inside the slots "
                    f"{base}..{end - 1} of pipe {decl.id} (line {decl.line})",
                    space=space,
                    addresses=((max(addr, base), min(addr + typ.nbytes, end)),),
                )


def _multi(k: Builder, op: Op) -> None:
    typ = op.out_types[0]
    if not isinstance(typ, MultiT):
        k.fail(op, f"gives a multi_tile_buf, not {typ}")
    _, (addr, *_), _ = k.scan.storage[id(op)]
    vr, vc = (k.whole(op, op.groups[n][0]) for n in ("valid_row", "valid_col"))
    if not (vr.constant and vc.constant):
        k.fail(op, "the valid extents of a multi buffer must be constants")
    tiles = tuple(base_tile(k, op, typ.tile, addr + i * typ.tile.nbytes, vr.value, vc.value) for i in range(typ.count))
    k.define(op, op.results[0], MultiValue(typ, tiles, k.emit.bind("M", tiles)))


def _multi_get(k: Builder, op: Op) -> None:
    found = k.lookup(op, op.ins[0])
    if not isinstance(found, MultiValue):
        k.fail(op, f"%{op.ins[0]} is no multi buffer")
    index = k.whole(op, op.groups["index"][0])
    count = found.type.count
    if index.constant and 0 <= index.value < count:
        put(k, op, TileValue(found.type.tile, found.tiles[index.value]), None)
        return
    k.emit.line(f"if not 0 <= {index.code} < {count}:")
    with k.emit.indented():
        k.report(op, FindingKind.OUT_OF_BOUNDS, f"the slot leaves a multi buffer of {count} tiles")
    put(k, op, TileValue(found.type.tile, None, f"{found.code}[{index.code} % {count}]"), None)


def _subview(k: Builder, op: Op) -> None:
    typ = tile_type(k, op)
    parent = k.tile(op, op.ins[0], op.types[0])
    row, col = k.wholes(op, "offsets")
    vr, vc = _window_valid(k, op, typ)
    fixed = all(isinstance(v, int) or v.constant for v in (vr, vc)) and row.constant and col.constant
    number = [v if isinstance(v, int) else v.value for v in (vr, vc)]
    if fixed and parent.tile is not None and op.results[0] not in k.mutated:
        r, c = row.value, col.value
        if 0 <= r <= parent.type.rows - typ.rows and 0 <= c <= parent.type.cols - typ.cols:
            k.define(op, op.results[0], TileValue(typ, parent.tile.window(r, c, typ, number[0], number[1])))
            return
    windows = k.emit.bind("window", Windows(typ, teller(k, op)))
    source = parent.code or k.emit.bind("T", parent.tile)
    codes = ", ".join(str(v) if isinstance(v, int) else v.code for v in (row, col, vr, vc))
    var = k.emit.name("t")
    k.emit.line(f"{var} = {windows}(ag, {source}, {codes})")
    k.define(op, op.results[0], TileValue(typ, None, var))


def _window_valid(k: Builder, op: Op, typ: TileT) -> tuple[int | Scalar, int | Scalar]:
    given = op.groups.get("valid")
    if given is not None:
        return k.whole(op, given[0]), k.whole(op, given[1])
    return (
        typ.rows if typ.v_row is None else typ.v_row,
        typ.cols if typ.v_col is None else typ.v_col,
    )


class Retyper:
    """Reinterpretations of run-time handles, one object per handle."""

    def __init__(self, typ: TileT) -> None:
        self.type = typ
        self.known: dict[Tile, Tile] = {}

    def __call__(self, tile: Tile) -> Tile:
        found = self.known.get(tile)
        if found is None:
            found = self.known[tile] = retyped(tile, self.type)
        return found


def retyped(tile: Tile, typ: TileT) -> Tile:
    """`tile` as type `typ`: its static valid extents, else those of the tile, cut to the new box."""
    vr = min(tile.vr, typ.rows) if typ.v_row is None else typ.v_row
    vc = min(tile.vc, typ.cols) if typ.v_col is None else typ.v_col
    if tile.type.same_storage(typ):
        return tile.with_valid(vr, vc)
    if typ.v_row is None and (tile.vr, tile.vc) == (tile.type.rows, tile.type.cols):
        vr, vc = typ.rows, typ.cols
    if tile.index is not None or tile.root[0] != tile.addr:
        raise BoundsError("a window of a tile cannot be reinterpreted")
    return tile.retyped(typ, vr, vc)


def _treshape(k: Builder, op: Op) -> None:
    typ = tile_type(k, op)
    parent = k.tile(op, op.ins[0], op.types[0])
    if typ.nbytes != parent.type.nbytes or typ.loc != parent.type.loc:
        k.fail(op, f"cannot see {parent.type} as {typ}: other size or memory")
    if parent.tile is not None:
        put(k, op, TileValue(typ, retyped(parent.tile, typ)), None)
    else:
        put(k, op, TileValue(typ, None, f"{k.emit.bind('retype', Retyper(typ))}({parent.code})"), None)


def _set_valid(k: Builder, op: Op) -> None:
    tile = k.tile(op, op.ins[0], op.types[0])
    vr, vc = k.whole(op, op.ins[1]), k.whole(op, op.ins[2])
    retag = k.emit.bind("retag", Retagger(teller(k, op)))
    assert tile.code is not None  # targets of set_validshape are run-time handles
    k.emit.line(f"{tile.code} = {retag}(ag, {tile.code}, {vr.code}, {vc.code})")


HANDLERS = {
    "pto.alloc_tile": _alloc,
    "pto.alloc_multi_tile": _multi,
    "pto.multi_tile_get": _multi_get,
    "pto.subview": _subview,
    "pto.treshape": _treshape,
    "pto.set_validshape": _set_valid,
}
