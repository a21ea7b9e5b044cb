"""One look over a kernel before it is compiled: constants, where tiles lie, which pipes it declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..findings import DeviceError
from ..text.nodes import Func, Op
from ..text.types import MultiT, TileT

ALIGN = 32


@dataclass(frozen=True)
class PipeDecl:
    """One `initialize_pipe`: which directions, slots and where the consumer's slots lie.

    `dirs` holds "c2v" and "v2c"; `slots` is the depth of the ring, `local` the slots of the on-chip buffer.
    """

    id: int
    dirs: tuple[str, ...]
    slot_size: int
    slots: int
    local: int
    bases: Mapping[str, int]
    line: int


@dataclass
class Scan:
    """What the look found. `storage` maps the line of an allocation to its bytes: (space, address, size)."""

    consts: dict[str, int | float | bool] = field(default_factory=dict)
    storage: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    reserved: dict[str, tuple[str, int, int, int]] = field(default_factory=dict)
    """Reserved buffers by result name: (space, address, size, line)."""
    pipes: dict[int, PipeDecl] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    """Operation names that occur."""
    pops: list[tuple[Op, str]] = field(default_factory=list)


def walk(ops: list[Op]) -> Iterator[Op]:
    """All operations, bodies included, in text order."""
    for op in ops:
        yield op
        for region in op.regions:
            yield from walk(region.ops)


def scan(func: Func, file: str) -> Scan:
    """Look over `func`.

    Raises:
        DeviceError: an address that is no constant.
    """
    found = Scan()
    cursor: dict[str, int] = {}
    allocs: list[Op] = []
    for op in walk(func.body.ops):
        found.names.add(op.name)
        if op.name == "arith.constant" and op.attrs["value"] is not None:
            found.consts[op.results[0]] = op.attrs["value"]
        elif op.name == "pto.reserve_buffer":
            _reserve(found, op, cursor, file)
        elif op.name == "pto.import_reserved_buffer":
            found.consts[op.results[0]] = 0
        elif op.name.endswith("_initialize_pipe"):
            decl = _pipe(found, op)
            if decl.id in found.pipes:
                raise DeviceError(f"pipe {decl.id} is initialised twice", file=file, line=op.line)
            found.pipes[decl.id] = decl
        elif op.name in ("pto.alloc_tile", "pto.alloc_multi_tile"):
            allocs.append(op)
        elif op.name.startswith("pto.tpop_from"):
            found.pops.append((op, "c2v" if op.name.endswith("aic") else "v2c"))
    for op in allocs:
        found.storage[id(op)] = _place(found, op, cursor, file)
    return found


def _reserve(found: Scan, op: Op, cursor: dict[str, int], file: str) -> None:
    space, size = str(op.attrs["location"]), int(op.attrs["size"])
    base = op.attrs.get("base")
    if base is None or (op.attrs.get("auto") and base == -1):
        base = cursor.get(space, 0)
    cursor[space] = max(cursor.get(space, 0), _up(int(base) + size))
    found.reserved[op.results[0]] = (space, int(base), size, op.line)
    found.consts[op.results[0]] = int(base)


def _pipe(found: Scan, op: Op) -> PipeDecl:
    mask = int(op.attrs["dir_mask"])
    dirs = tuple(d for bit, d in ((1, "c2v"), (2, "v2c")) if mask & bit)
    slots = int(op.attrs.get("slot_num", 8 if len(dirs) == 1 else 4))
    bases = {}
    for name in dirs:
        given = op.groups.get(f"{name}_consumer_buf")
        bases[name] = int(found.consts.get(given[0], 0)) if given else 0
    local = int(op.attrs.get("local_slot_num", slots))
    return PipeDecl(int(op.attrs.get("id", 0)), dirs, int(op.attrs["slot_size"]), slots, local, bases, op.line)


def _place(found: Scan, op: Op, cursor: dict[str, int], file: str) -> tuple[str, int, int]:
    """Bytes of an allocation. Without an address (planner left to the assembler) each one gets bytes of its own."""
    typ = op.out_types[0]
    tile = typ.tile if isinstance(typ, MultiT) else typ
    if not isinstance(tile, TileT):
        raise DeviceError(f"{op.name} gives a tile, not {typ}", file=file, line=op.line)
    size = tile.nbytes * (typ.count if isinstance(typ, MultiT) else 1)
    given = op.groups.get("addr")
    if given is None:
        addr = cursor.get(tile.loc, 0)
        cursor[tile.loc] = _up(addr + size)
        return tile.loc, addr, size
    value = found.consts.get(given[0])
    if not isinstance(value, int) or isinstance(value, bool):
        raise DeviceError(f"the address %{given[0]} of a tile must be an integer constant", file=file, line=op.line)
    return tile.loc, value, size


def _up(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
