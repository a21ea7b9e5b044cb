"""One look over a kernel before it is compiled: constants, where tiles lie, which pipes it declares."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..findings import DeviceError
from ..machine.dtypes import NUMPY
from ..text.nodes import Func, Op
from ..text.types import MultiT, PtoType, TileT

ALIGN = 32
_MAX_SLOTS = 64
_ARITHMETIC = {"arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul}


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
    """What the look found. `storage` maps an allocation (by identity) to its bytes: space, possible addresses, size."""

    consts: dict[str, int | float | bool] = field(default_factory=dict)
    storage: dict[int, tuple[str, tuple[int, ...], int]] = field(default_factory=dict)
    sources: dict[str, Op] = field(default_factory=dict)
    """Operation that gives a name, for integer arithmetic."""
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


def check_types(func: Func, file: str) -> None:
    """Refuse element types without storage (the 4-bit ones).

    Raises:
        DeviceError: with the line of the first one.
    """
    for line, typ in ((func.line, t) for _, t in func.params):
        _check_type(typ, file, line)
    for op in walk(func.body.ops):
        for typ in (*op.types, *op.out_types):
            _check_type(typ, file, op.line)


def _check_type(typ: PtoType, file: str, line: int) -> None:
    dtype = typ.tile.dtype if isinstance(typ, MultiT) else getattr(typ, "dtype", None)
    if dtype is not None and dtype not in NUMPY:
        message = f"the simulated device has no storage for element type {dtype}; it has {', '.join(NUMPY)}"
        raise DeviceError(message, file=file, line=line)


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
        elif op.name.startswith("arith.") and len(op.results) == 1:
            found.sources[op.results[0]] = op
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


def _place(found: Scan, op: Op, cursor: dict[str, int], file: str) -> tuple[str, tuple[int, ...], int]:
    """Bytes of an allocation. Without an address (planner left to the assembler) each one gets bytes of its own."""
    typ = op.out_types[0]
    tile = typ.tile if isinstance(typ, MultiT) else typ
    if not isinstance(tile, TileT):
        raise DeviceError(f"{op.name} gives a tile, not {typ}", file=file, line=op.line)
    size = tile.nbytes * (typ.count if isinstance(typ, MultiT) else 1)
    given = op.groups.get("addr")
    if given is None:
        addr = cursor.get(tile.space, 0)
        cursor[tile.space] = _up(addr + size)
        return tile.space, (addr,), size
    values = possible(found, given[0])
    if values is None:
        raise DeviceError(
            f"the address %{given[0]} of a tile must be a constant, or a constant plus a slot number (x mod n) times a "
            "constant",
            file=file,
            line=op.line,
        )
    return tile.space, tuple(sorted(values)), size


def possible(found: Scan, name: str, depth: int = 0) -> set[int] | None:
    """The values that integer arithmetic can give, when they are few: constants, remainders by a constant, and sums and
    products of these."""
    value = found.consts.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return {value}
    op = found.sources.get(name)
    if op is None or depth > 16:
        return None
    if op.name in ("arith.index_cast", "arith.extsi", "arith.trunci"):
        return possible(found, op.ins[0], depth + 1)
    if op.name in ("arith.remsi", "arith.remui"):
        by = possible(found, op.ins[1], depth + 1)
        return set(range(next(iter(by)))) if by and len(by) == 1 and 1 <= min(by) <= _MAX_SLOTS else None
    if op.name in ("arith.addi", "arith.subi", "arith.muli"):
        a, b = (possible(found, n, depth + 1) for n in op.ins)
        if a is None or b is None or len(a) * len(b) > _MAX_SLOTS:
            return None
        fn = _ARITHMETIC[op.name]
        return {fn(x, y) for x in a for y in b}
    return None


def _up(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
