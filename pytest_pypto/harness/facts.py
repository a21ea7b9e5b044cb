"""What the tolerance policy and the reports want to know about a program: sums, narrow types, tiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pytest_pypto.check.tolerance import MANTISSA_BITS
from pytest_pypto.harness.case import Accumulation
from pytest_pypto.harness.signature import TORCH_NAMES, from_program, plain_name

MOVES = frozenset(
    [
        "slice",
        "load",
        "create",
        "create_tensor",
        "full",
        "assemble",
        "store",
        "reshape",
        "transpose",
        "move",
        "view",
        "read",
        "write",
        "extract",
        "concat",
        "set_validshape",
        "fillpad",
        "tpop_from_aic",
        "tpop_from_aiv",
        "tpush_to_aic",
        "tpush_to_aiv",
    ]
)
"""Operators that hand values on without rounding them."""


def facts_of(program: Any, split: str = "NONE") -> Accumulation:
    """Facts about a front-end program; the defaults for None."""
    if program is None:
        return Accumulation(split=split)
    names = {p.name for p in from_program(program).outputs}
    found = _scan(program, names)
    tiles = {name: next(iter(shapes)) for name, shapes in found.tiles.items() if len(shapes) == 1}
    return Accumulation(found.length, found.narrowest(), tiles, split)


class _Facts:
    def __init__(self, outputs: set[str]) -> None:
        self.outputs = outputs
        self.length = 1
        self.casts: set[str] = set()
        self.tiles: dict[str, set[tuple[int, int]]] = defaultdict(set)

    def narrowest(self) -> str | None:
        floats = [name for name in self.casts if MANTISSA_BITS.get(name, 99) < MANTISSA_BITS["float32"]]
        return min(floats, key=MANTISSA_BITS.__getitem__) if floats else None

    def call(self, name: str, op: Any, trips: int) -> None:
        short = name.rpartition(".")[2]
        terms = _terms(short, op)
        self.length = max(self.length, terms * trips if terms > 1 else trips)
        dtype = TORCH_NAMES.get(str(getattr(op.type, "dtype", "")))
        if dtype is not None and short not in MOVES:
            self.casts.add(dtype)
        if short in ("assemble", "store"):
            target, source = (op.args[0], op.args[1]) if short == "assemble" else (op.args[2], op.args[0])
            extents = constants(source.type.shape)
            out = plain_name(str(getattr(target, "name_hint", "")))
            if out in self.outputs and extents is not None and len(extents) >= 2:
                self.tiles[out].add((extents[-2], extents[-1]))


def _scan(program: Any, outputs: set[str]) -> _Facts:
    from pypto import ir

    found = _Facts(outputs)

    class Scan(ir.IRVisitor):  # type: ignore[misc]
        trips = 1

        def visit_call(self, op: Any) -> None:
            name = getattr(op.op, "name", "")
            if "." in name:
                found.call(name, op, self.trips)
            super().visit_call(op)

        def visit_for_stmt(self, op: Any) -> None:
            outer = self.trips
            bounds = constants((op.start, op.stop, op.step))
            if bounds is not None and bounds[2] and len(op.iter_args):
                self.trips *= max(1, len(range(*bounds)))
            super().visit_for_stmt(op)
            self.trips = outer

    Scan().visit_program(program)
    return found


def constants(exprs: Iterable[Any]) -> tuple[int, ...] | None:
    """The values of constant expressions, None when one is not constant."""
    values = [getattr(x, "value", None) for x in exprs]
    return tuple(v for v in values if v is not None) if all(isinstance(v, int) for v in values) else None


def _terms(short: str, op: Any) -> int:
    """How many terms one call of this operator adds up."""
    if not op.args or not hasattr(op.args[0].type, "shape"):
        return 1
    shape = constants(op.args[0].type.shape)
    if shape is None or not shape:
        return 1
    if "matmul" in short or "gemv" in short:
        transposed = any(bool(op.kwargs.get(key)) for key in ("a_trans", "transpose_a", "trans_a") if key in op.kwargs)
        acc = 1 if short.endswith("_acc") else 0
        operand = constants(op.args[acc].type.shape) if len(op.args) > acc else shape
        shape = operand or shape
        return shape[-2] if transposed and len(shape) > 1 else shape[-1]
    if "sum" in short or short.endswith("prod"):
        return shape[-2] if short.startswith("col_") and len(shape) > 1 else shape[-1]
    return 1
