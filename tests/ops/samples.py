"""A legal call of every operator, found by trying operands: nothing here repeats what the records say."""

from __future__ import annotations

import random
from typing import Any

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import types as t
from pytest_pypto.pypto.ir.dtypes import INDEX, DataType
from pytest_pypto.pypto.ir.enums import MemorySpace
from pytest_pypto.pypto.ir.op_table import REQUIRED, KwParam, OpSpec, Param, create_op_call
from tests.ops.vectors import Reader

_SHAPES = ["16,16", "16,1", "1,16", "16", "16,32", "1,1", "32,16", "1,32", "1", "1,16,16", "1,16,16,16", "512"]
_DTYPES = ["fp32", "fp16", "int32", "uint32", "int8", "uint8", "bf16", "uint16", "int16", "int64"]
_TRIES = 3000

_MX = (
    *("t[16,64]fp8e4m3fn @Left", "t[16,2]fp8e8m0 @LeftScale"),
    *("t[64,32]fp8e4m3fn @Right", "t[2,32]fp8e8m0 @RightScale"),
)
_SIDES = ("t[16,16]fp16 @Left", "t[16,16]fp16 @Right")
_ROW = ("t[1,16]fp16 @Left", "t[16,16]fp16 @Right")
_BY_HAND: dict[str, tuple[str, ...]] = {
    "tile.matmul_acc": ("t[16,16]fp32 @Acc", *_SIDES),
    "tile.matmul_bias": (*_SIDES, "t[1,16]fp32 @Bias"),
    "tile.gemv_bias": (*_ROW, "t[1,16]fp32 @Bias"),
    "tensor.scatter": ("T[16,16]fp16", "T[16,16]int16", "T[16,16]fp16"),
    "tile.batch_matmul_acc": ("t[2,16,16]fp32 @Acc", "t[2,16,16]fp16 @Mat", "t[2,16,16]fp16 @Mat"),
    "tile.matmul_mx": _MX,
    "tile.matmul_mx_acc": ("t[16,32]fp32 @Acc", *_MX),
    "tile.matmul_mx_bias": (*_MX, "t[1,32]fp32 @Bias"),
    "tensor.mrgsort_format1": ("T[1,256]fp32", "i64"),
    "tile.mrgsort_format1": ("t[1,256]fp32", "i64"),
}


def sample(spec: OpSpec) -> e.Call:
    """A call of this operator with its required keywords; its operands that are no constants are parameters `p<n>`."""
    by_hand = _BY_HAND.get(spec.name)
    if by_hand is not None:
        kwargs = {"dim": -1} if spec.name == "tensor.scatter" else {}
        return create_op_call(spec.name, _named([Reader().operand(a) for a in by_hand]), kwargs)
    rng = random.Random(spec.name)
    why: Exception | None = None
    for _ in range(_TRIES):
        count = rng.randint(spec.required, len(spec.params))
        args = [_operand(rng, p) for p in spec.params[:count]]
        kwargs = {k.name: _keyword(rng, k) for k in spec.kwargs if k.default is REQUIRED}
        try:
            return create_op_call(spec.name, _named(args), kwargs)
        except (ValueError, TypeError) as error:
            why = error
    raise AssertionError(f"no legal operands found for {spec.name}: {why}")


def _named(args: list[e.Expr]) -> list[e.Expr]:
    return [e.Var(f"p{k}", a.type) if isinstance(a, e.Var) else a for k, a in enumerate(args)]


def _operand(rng: random.Random, param: Param) -> e.Expr:
    kind = rng.choice(param.kind.split("|"))
    if kind == "tile":
        where = param.spaces or frozenset(MemorySpace) - {MemorySpace.DDR, MemorySpace.ScalarLocal}
        space = rng.choice(sorted(s.name for s in where))
        return Reader().operand(f"t[{rng.choice(_SHAPES)}]{rng.choice(_DTYPES)} @{space}")
    if kind == "tuple":
        return e.MakeTuple(tuple(e.index(rng.choice([0, 1, 16])) for _ in range(rng.choice([1, 2, 3]))))
    if kind in ("scalar", "number"):
        return rng.choice([e.ConstFloat(1.0, DataType.FP32), e.ConstInt(1, DataType.INT32), e.ConstInt(1, INDEX)])
    fixed: dict[str, e.Expr] = {
        "typed": e.ConstInt(1, DataType.INT32),
        "index": e.index(rng.choice([0, 1, 2])),
        "int32": e.ConstInt(1, DataType.INT32),
        "array": e.Var("x", t.ArrayType(DataType.INT32, e.index(8))),
        "memory": e.Var("x", t.PtrType()),
    }
    return fixed[kind] if kind in fixed else Reader().operand(f"T[{rng.choice(_SHAPES)}]{rng.choice(_DTYPES)}")


def _keyword(rng: random.Random, kw: KwParam) -> Any:
    values: dict[str, list[Any]] = {
        "int": [0, 1, 2, 16],
        "dtype": [DataType.INT32],
        "bool": [False, True],
        "str": ["hard", "soft", "mix"],
        "space": [MemorySpace.Vec],
    }
    return rng.choice(values[kw.kind])
