"""Calls of the language: which operator they become, the types of literals, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import types as t
from pytest_pypto.pypto.ir.dtypes import FP32, INDEX, DataType
from pytest_pypto.pypto.ir.enums import AtomicType, MemorySpace, PadValue, PipeType
from pytest_pypto.pypto.language.op.dispatch import UnknownOperation, call_op

FP16, INT32, BOOL = DataType.FP16, DataType.INT32, DataType.BOOL


def _tensor(name: str, *shape: int, dtype: DataType = FP32) -> e.Var:
    return e.Var(name, t.TensorType(shape, dtype))


def _tile(name: str, *shape: int, dtype: DataType = FP32) -> e.Var:
    return e.Var(name, t.TileType(shape, dtype, None, None, MemorySpace.Vec))


def _scalar(name: str, dtype: DataType = INDEX) -> e.Var:
    return e.Var(name, t.ScalarType(dtype))


X, H, N = _tensor("x", 64, 64), _tensor("h", 64, 64, dtype=FP16), _tensor("i", 64, 64, dtype=INT32)
T, TH, TMP = _tile("t", 64, 64), _tile("th", 64, 64, dtype=FP16), _tile("tmp", 64, 64)
K = _scalar("k")


def text(path: str, *args: Any, **kwargs: Any) -> str:
    return str(call_op(path, list(args), kwargs))


@pytest.mark.parametrize(
    ("path", "args", "wanted"),
    [
        ("add", (X, X), "pl.tensor.add(x, x)"),
        ("add", (X, 3), "pl.tensor.adds(x, 3.0)"),
        ("add", (H, 3), "pl.tensor.adds(h, pl.const(3.0, pl.FP16))"),
        ("add", (H, 2.0), "pl.tensor.adds(h, 2.0)"),
        ("mul", (N, 3), "pl.tensor.muls(i, pl.const(3, pl.INT32))"),
        ("mul", (N, 1.5), "pl.tensor.muls(i, 1.5)"),
        ("maximum", (X, 0), "pl.tensor.maximum(x, 0.0)"),
        ("minimum", (X, X), "pl.tensor.minimum(x, x)"),
        ("add", (T, T), "pl.tile.add(t, t)"),
        ("add", (TH, 2), "pl.tile.adds(th, pl.const(2.0, pl.FP16))"),
        ("maximum", (T, 0), "pl.tile.maximums(t, 0.0)"),
        ("cmp", (T, 0.5), "pl.tile.cmps(t, 0.5, cmp_type=0)"),
        ("cmp", (X, X), "pl.tensor.cmp(x, x, cmp_type=0)"),
        ("shl", (N, 2), "pl.tensor.shls(i, pl.const(2, pl.INT32))"),
        ("and_", (N, N), "pl.tensor.and_(i, i)"),
        ("tensor.add", (X, 1), "pl.tensor.adds(x, 1.0)"),
        ("tile.sub", (T, 1), "pl.tile.subs(t, 1.0)"),
        ("add", (K, 1), "k + 1"),
        ("min", (K, 3), "pl.min(k, 3)"),
        ("exp", (X,), "pl.tensor.exp(x)"),
        ("row_sum", (X,), "pl.tensor.row_sum(x)"),
        ("row_sum", (T, TMP), "pl.tile.row_sum(t, tmp)"),
        ("matmul", (X, X), "pl.tensor.matmul(x, x, a_trans=False, b_trans=False, c_matrix_nz=False)"),
        ("reshape", (T, [32, 128]), "pl.tile.reshape(t, [32, 128])"),
        ("transpose", (X, 0, 1), "pl.tensor.transpose(x, 0, 1)"),
        ("read", (X, [0, K]), "pl.tensor.read(x, [0, k])"),
        ("write", (X, [0, 1], 2), "pl.tensor.write(x, [0, 1], 2.0)"),
        ("get_block_idx", (), "pl.tensor.get_block_idx()"),
        ("tile.get_block_idx", (), "pl.tile.get_block_idx()"),
    ],
)
def test_call(path: str, args: tuple[Any, ...], wanted: str) -> None:
    assert text(path, *args) == wanted


@pytest.mark.parametrize(
    ("path", "args", "kwargs", "wanted"),
    [
        ("load", (X, [0, 0], [16, 64]), {}, "pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)"),
        (
            "load",
            (X, [K, 0], [16, 64]),
            {"valid_shape": [K, 64], "target_memory": MemorySpace.Mat},
            "pl.tile.load(x, [k, 0], [16, 64], [k, 64], target_memory=pl.Mem.Mat)",
        ),
        ("store", (T, [0, 0], X), {"atomic": AtomicType.Add}, "pl.tile.store(t, [0, 0], x, atomic=pl.AtomicType.Add)"),
        ("store", (T, [0, 0], X), {}, "pl.tile.store(t, [0, 0], x)"),
        ("slice", (X, [1, 64], [K, 0]), {"drop_dims": [0]}, "pl.tensor.slice(x, [1, 64], [k, 0], [], [0])"),
        ("cast", (T, FP16), {}, "pl.tile.cast(t, target_type=pl.FP16, mode='round')"),
        ("cast", (X, FP16), {"mode": "rint"}, "pl.tensor.cast(x, target_type=pl.FP16, mode='rint')"),
        ("cast", (X, 0x33), {"mode": 3}, "pl.tensor.cast(x, target_type=pl.FP16, mode='floor')"),
        ("full", ([4, 4], FP16, 0.0), {}, "pl.tensor.full([4, 4], dtype=pl.FP16, value=0.0)"),
        ("tile.full", ([4, 4],), {"dtype": INT32, "value": 7}, "pl.tile.full([4, 4], dtype=pl.INT32, value=7)"),
        ("fillpad", (T,), {"pad_value": float("-inf")}, "pl.tile.fillpad(t, pad_value=pl.PadValue.min)"),
        (
            "create_tensor",
            ([K, 4],),
            {"dtype": FP32},
            "pl.tensor.create([k, 4], dtype=pl.FP32, layout=pl.TensorLayout.ND)",
        ),
        ("create_tile", ([8, 8], FP32), {}, "pl.tile.create([8, 8], dtype=pl.FP32, target_memory=pl.Mem.Vec)"),
        ("tile.ci", (4, [1, 32]), {}, "pl.tile.ci(pl.const(4, pl.INT32), [1, 32], dtype=pl.INT32, descending=False)"),
        ("arange", (0, [1, 32]), {}, "pl.tensor.ci(pl.const(0, pl.INT32), [1, 32], dtype=pl.INT32, descending=False)"),
        ("gather", (X, -1, N), {}, "pl.tensor.gather(x, i, dim=-1)"),
        ("gather", (X,), {"mask_pattern": "P1010"}, "pl.tensor.gather_mask(x, mask_pattern=2)"),
        ("mrgsort", (X,), {"block_len": 64}, "pl.tensor.mrgsort_format1(x, 64)"),
        ("scatter_update", (X, -2, N, X), {}, "pl.tensor.scatter_update(x, i, x, dim=-2)"),
        ("tpush_to_aiv", (T,), {"split": 1}, "pl.tile.tpush_to_aiv(t, split=1)"),
        ("tfree_to_aic", (T,), {}, "pl.system.tfree_to_aic(t)"),
        ("tile.alloc", (MemorySpace.Vec, 256), {"pinned": True}, "pl.tile.alloc(pl.Mem.Vec, 256, pinned=True)"),
        (
            "system.sync_src",
            (),
            {"set_pipe": PipeType.MTE2, "wait_pipe": PipeType.V, "event_id": 0},
            "pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)",
        ),
        ("system.task_dummy", (), {"deps": [None]}, "pl.system.task_dummy(deps=[pl.system.task_invalid()])"),
        ("array.create", (4, INT32), {}, "pl.array.create(4, dtype=pl.INT32)"),
        ("tile.aiv_shard", (T,), {"split": 1}, "pl.tile.aiv_shard(t, split=1)"),
        (
            "aiv_initialize_pipe",
            (),
            {"dir_mask": 1, "slot_size": 512},
            "pl.system.aiv_initialize_pipe(pl.const(0, pl.INT32), pl.const(0, pl.INT32), dir_mask=1, slot_size=512)",
        ),
    ],
)
def test_call_with_keywords(path: str, args: tuple[Any, ...], kwargs: dict[str, Any], wanted: str) -> None:
    assert text(path, *args, **kwargs) == wanted


@pytest.mark.parametrize(
    ("path", "args", "kwargs"),
    [
        ("tile.load", (X, [0, 0], [16, 64], [16, 64]), {"target_memory": MemorySpace.Vec}),
        ("tensor.slice", (X, [1, 64], [K, 0], [], [0]), {}),
        ("tile.row_max", (T, TMP), {}),
        ("tensor.gather", (X, N), {"dim": -1}),
        ("tensor.gather_mask", (X,), {"mask_pattern": 2}),
        ("tile.mrgsort_format1", (T, 64), {}),
        ("tile.mrgsort_format2", (T, T, TMP), {"exhausted": False}),
        ("tensor.scatter_update", (X, N, X), {"dim": -2}),
        ("tile.random", (*(e.ConstInt(k, INT32) for k in range(6)), [8, 8]), {"dtype": INT32, "rounds": 7}),
        ("tile.cast", (T,), {"target_type": FP16, "mode": "round"}),
        ("tensor.reshape", (X, [4096], [80]), {}),
        ("tile.aic_gather", (T,), {"split": 2}),
    ],
)
def test_the_printed_layout_is_accepted(path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    made = call_op(path, list(args), kwargs)
    assert isinstance(made, e.Call)
    assert made.op.name == path
    assert str(made).startswith(f"pl.{path}(")


@pytest.mark.parametrize(
    ("path", "args", "kwargs", "message"),
    [
        ("add", (X,), {}, "add() missing 1 required positional argument: 'rhs'"),
        ("add", (X, X, X), {}, "add() takes 2 positional arguments but 3 were given"),
        ("exp", (X,), {"mode": 1}, "exp() got an unexpected keyword argument 'mode'"),
        ("sub", (1.0, X), {}, "pl.sub: expected Tensor or Tile operands, got (ConstFloat, Tensor)"),
        ("add", (X, T), {}, "pl.add: expected Tensor or Tile operands, got (Tensor, Tile)"),
        ("exp", (K,), {}, "pl.exp: expected Tensor or Tile operands, got (Scalar)"),
        ("row_max", (T,), {}, "pl.row_max on a Tile needs a scratch tile: pl.row_max(..., tmp_tile)"),
        ("row_max", (X, TMP), {}, "pl.row_max: 'tmp_tile' is for tiles only, but the operand is a Tensor"),
        ("matmul", (T, T), {"a_trans": True}, "pl.matmul: 'a_trans' is for tensors only, but the operand is a Tile"),
        ("slice", (T, [8, 8], [0, 0]), {"clamp": True}, "pl.slice: 'clamp' is for tensors only"),
        ("assemble", (T, T, [0, 0]), {"atomic": AtomicType.Add}, "pl.assemble: 'atomic' is for tensors only"),
        ("rsqrt", (T,), {"high_precision": True}, "pl.rsqrt: 'high_precision' is for tensors only"),
        ("aiv_shard", (T,), {}, "aiv_shard() without split= is allowed only inside"),
        ("gather", (X,), {}, "gather() takes dim and index, or mask_pattern=, or kvalue="),
        ("min", (X, X), {}, "pl.min: expected scalars, got (Tensor, Tensor)"),
        ("load", (X, "ab", [16, 64]), {}, "load() argument 'offsets': expected a list of integers, got 'ab'"),
        ("load", (X, [0.5, 0], [16, 64]), {}, "load() argument 'offsets': expected an integer, got 0.5"),
        ("tile.exp", (X,), {}, "The operator tile.exp requires a tile as operand 'tile', but got pl.Tensor"),
    ],
)
def test_type_errors(path: str, args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as error:
        call_op(path, list(args), kwargs)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("path", "args", "kwargs", "message"),
    [
        ("add", (X, K), {}, "Scalar operand has dtype `index`, which no element has; convert it: pl.cast(x, pl.FP32)"),
        ("add", (X, _tensor("y", 32, 48)), {}, "The operator tensor.add requires compatible shapes, but got [64, 64]"),
        (
            "cast",
            (T, FP16),
            {"mode": "up"},
            "cast mode must be one of none, rint, round, floor, ceil, trunc, odd, got",
        ),
        ("fillpad", (T,), {"pad_value": PadValue.null}, "pad_value must be pl.PadValue.zero, max or min"),
        ("fillpad", (T,), {"pad_value": 3}, "pad_value must be pl.PadValue.zero, max or min"),
        ("fillpad", (T,), {"pad_value": True}, "pad_value must be pl.PadValue.zero, max or min"),
        ("gather", (X,), {"mask_pattern": 8}, "mask_pattern must be one of P0101"),
        ("system.sync_set", (14,), {"pipe": PipeType.V}, "event_id must be 0..13, got 14"),
    ],
)
def test_value_errors(path: str, args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  the text is checked below
        call_op(path, list(args), kwargs)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("path", ["frobnicate", "tile.frobnicate", "foo.bar", "tensor.load"])
def test_unknown(path: str) -> None:
    with pytest.raises(UnknownOperation, match=f"Unknown operation 'pl.{path}'"):
        call_op(path, [X], {})


def test_constants_are_never_retyped() -> None:
    two = e.ConstFloat(2.0, FP16)
    made = call_op("add", [X, two], {})
    assert isinstance(made, e.Call)
    assert made.args[1] is two


def test_pop_takes_a_type_or_leaves_it_to_the_annotation() -> None:
    made = call_op("tpop_from_aic", [], {"shape": [16, 16], "dtype": FP32, "split": 1})
    assert str(made.type) == "pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec]"
    assert call_op("tpop_from_aic", [], {}).type is t.UnknownType.get()
    with pytest.raises(TypeError, match="shape and dtype together"):
        call_op("tpop_from_aiv", [], {"shape": [16, 16]})


def test_results_of_calls_not_seen_yet_are_taken_as_tensors() -> None:
    later = e.Var("later", t.UnknownType.get())
    made = call_op("add", [later, X], {})
    assert str(made) == "pl.tensor.add(later, x)"
    assert made.type is t.UnknownType.get()
