"""Type rules, by small vectors worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ops.vectors import describe, infer


def _tile(shape: list[Any], dtype: str = "fp32", valid: list[Any] | None = None, memory: str = "Vec") -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "tile", "shape": shape, "dtype": dtype}
    if valid is not None:
        made["valid"] = valid
    return {**made, "memory": memory}


def _tensor(shape: list[Any], dtype: str = "fp32", valid: list[Any] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "tensor", "shape": shape, "dtype": dtype}
    return made if valid is None else {**made, "valid": valid}


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        ("int64", "fp16", "fp16"),
        ("fp16", "fp32", "fp32"),
        ("uint8", "int16", "int16"),
        ("uint32", "int32", "int32"),
        ("int32", "uint32", "int32"),
        ("bf16", "fp16", "bfloat16"),
        ("fp16", "bf16", "fp16"),
        ("bool", "int8", "int8"),
        ("uint16", "int8", "uint16"),
    ],
)
def test_promotion(a: str, b: str, dtype: str) -> None:
    assert describe(infer("tensor.add", [f"T[4,8]{a}", f"T[4,8]{b}"])) == _tensor([4, 8], dtype)
    assert describe(infer("tile.add", [f"t[4,8]{a}", f"t[4,8]{b}"])) == _tile([4, 8], dtype)


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        ("4,8", "8", [4, 8]),
        ("4,8", "4,1", [4, 8]),
        ("4,1", "1,8", [4, 8]),
        ("2,4,8", "4,8", [2, 4, 8]),
        ("M,8", "M,8", ["M", 8]),
        ("M,8", "1,8", ["M", 8]),
        ("1,1", "M,N", ["M", "N"]),
    ],
)
def test_broadcast(a: str, b: str, shape: list[Any]) -> None:
    assert describe(infer("tensor.mul", [f"T[{a}]fp32", f"T[{b}]fp32"])) == _tensor(shape)


@pytest.mark.parametrize(("a", "b"), [("4,8", "2,8"), ("M,8", "N,8"), ("8", "3")])
def test_broadcast_refused(a: str, b: str) -> None:
    with pytest.raises(ValueError, match=r"requires compatible shapes, but got \["):
        infer("tensor.add", [f"T[{a}]fp32", f"T[{b}]fp32"])


# window reads


@pytest.mark.parametrize(
    ("source", "offset", "window", "request_", "valid"),
    [
        ("64,64", "0,0", "16,16", "16,16", None),
        ("64,64", "n,0", "16,16", "16,16", None),
        ("64,64", "60,0", "16,16", "4,16", [4, 16]),
        ("64,64] v[20,64", "16,0", "16,16", "16,16", [4, 16]),
        ("64,64] v[20,64", "24,0", "16,16", "16,16", [0, 16]),
        ("64,64] v[20,64", "0,0", "16,16", "3,16", [3, 16]),
        ("64,64", "0,0", "16,16", "m,16", ["m", 16]),
    ],
)
def test_load_valid(source: str, offset: str, window: str, request_: str, valid: list[Any] | None) -> None:
    shape, _, rest = source.partition("] ")
    tensor = f"T[{shape}]fp32" + (f" {rest}]" if rest else "")
    args = [tensor, f"({offset})", f"({window})", f"({request_})"]
    assert describe(infer("tile.load", args, {"target_memory": "Vec"})) == _tile([16, 16], valid=valid)


def test_load_of_a_source_with_a_symbolic_valid_extent() -> None:
    found = infer("tile.load", ["T[16,64]fp32 v[16,n]", "(0,0)", "(16,64)", "(16,64)"], {"target_memory": "Vec"})
    assert describe(found)["valid"] == [16, "pl.min(n, 64)"]


@pytest.mark.parametrize(
    ("offset", "window", "request_", "why"),
    [
        ("-1,0", "16,16", "16,16", "offsets of at least 0"),
        ("60,0", "16,16", "16,16", "reads beyond its source on axis 0"),
        ("0,0", "16,16", "17,16", "valid shape within the window"),
        ("0", "16,16", "16,16", "of one length"),
    ],
)
def test_load_refused(offset: str, window: str, request_: str, why: str) -> None:
    args = ["T[64,64]fp32", f"({offset})", f"({window})", f"({request_})"]
    with pytest.raises(ValueError, match=why):
        infer("tile.load", args, {"target_memory": "Vec"})


def test_clamp_cuts_instead() -> None:
    args = ["T[64,64]fp32", "(60,0)", "(16,16)", "(16,16)"]
    found = infer("tile.load", args, {"target_memory": "Vec", "clamp": True})
    assert describe(found) == _tile([16, 16], valid=[4, 16])


def test_chip_windows_must_fit_even_with_a_small_request() -> None:
    with pytest.raises(ValueError, match="reads beyond its source"):
        infer("tile.slice", ["t[64,64]fp32", "(16,16)", "(60,0)", "(4,16)"])


# write unions


@pytest.mark.parametrize(
    ("target", "source", "offset", "valid"),
    [
        ("T[64,64]fp32", "T[16,16]fp32", "48,48", None),
        ("T[64,64]fp32 v[16,64]", "T[16,64]fp32", "16,0", [32, 64]),
        ("T[64,64]fp32 v[16,64]", "T[16,64]fp32", "8,0", [24, 64]),
        ("T[64,64]fp32 v[16,64]", "T[4,4]fp32", "8,8", [16, 64]),
        ("T[64,64]fp32 v[16,64]", "T[32,64]fp32", "0,0", [32, 64]),
        ("T[64,64]fp32 v[0,0]", "T[32,8]fp32", "0,0", [32, 8]),
        ("T[64,64]fp32 v[64,16]", "T[64,8]fp32", "0,16", [64, 24]),
    ],
)
def test_union(target: str, source: str, offset: str, valid: list[Any] | None) -> None:
    assert describe(infer("tensor.assemble", [target, source, f"({offset})"])) == _tensor([64, 64], valid=valid)


@pytest.mark.parametrize(
    ("target", "source", "offset", "why"),
    [
        ("T[64,64]fp32", "T[16,16]fp32", "60,48", "writes beyond its target"),
        ("T[64,64]fp32", "T[16,16]fp32", "-4,0", "offsets of at least 0"),
        ("T[64,64]fp32 v[16,64]", "T[16,64]fp32", "20,0", "no box"),
        ("T[64,64]fp32 v[16,64]", "T[16,32]fp32", "16,0", "no box"),
        ("T[64,64]fp32 v[0,0]", "T[16,32]fp32", "16,0", "from its origin"),
        ("T[64,64]fp32", "T[16]fp32", "16,0", "of one rank"),
    ],
)
def test_union_refused(target: str, source: str, offset: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        infer("tensor.assemble", [target, source, f"({offset})"])


# reshape


@pytest.mark.parametrize(
    ("source", "shape", "valid"),
    [
        ("8,16", "16,8", None),
        ("8,16] v[5,16", "16,8", [10, 8]),
        ("8,16] v[5,16", "128", [80]),
        ("8,16] v[5,7", "1,8,16", [1, 5, 7]),
        ("8,16] v[0,3", "4,32", [0, 0]),
        ("8,16] v[n,16", "8,4,4", ["n", 4, 4]),
        ("8,16] v[1,5", "128", [5]),
        ("M,16", "M,4,4", None),
    ],
)
def test_reshape(source: str, shape: str, valid: list[Any] | None) -> None:
    text, _, rest = source.partition("] ")
    found = describe(infer("tensor.reshape", [f"T[{text}]fp32" + (f" {rest}]" if rest else ""), f"({shape},)"]))
    assert found.get("valid") == valid


@pytest.mark.parametrize(
    ("source", "shape", "why"),
    [
        ("T[8,16]fp32", "4,16", "same number of elements"),
        ("T[M,16]fp32", "M,8", "same number of elements"),
        ("T[8,16]fp32 v[5,16]", "4,32", "as a box"),
        ("T[8,16]fp32 v[5,7]", "16,8", "as a box"),
        ("T[8,16]fp32 v[n,16]", "128,", "as a box"),
    ],
)
def test_reshape_refused(source: str, shape: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        infer("tensor.reshape", [source, f"({shape})"])


# products


def test_products_accumulate_wide() -> None:
    assert describe(infer("tile.matmul", ["t[16,32]int8 @Left", "t[32,16]int8 @Right"])) == _tile(
        [16, 16], "int32", memory="Acc"
    )
    assert describe(infer("tile.matmul", ["t[16,32]bf16 @Left", "t[32,16]bf16 @Right"])) == _tile(
        [16, 16], memory="Acc"
    )


def test_accumulator_pitch_follows_unknown_valid_rows() -> None:
    full = infer("tile.matmul", ["t[16,32]bf16 @Left", "t[32,16]bf16 @Right"])
    cut = infer("tile.matmul", ["t[16,32]bf16 v[5,32] @Left", "t[32,16]bf16 @Right"])
    assert full.tile_view is None  # type: ignore[attr-defined]
    assert cut.tile_view.compact.name == "normal"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("op", "args", "why"),
    [
        ("tile.matmul", ["t[16,32]bf16 @Left", "t[16,16]bf16 @Right"], "equal inner extents"),
        ("tile.matmul", ["t[16,32]bf16 @Left", "t[32,16]fp16 @Right"], "of one element type"),
        (
            "tile.matmul_acc",
            ["t[16,16]bf16 @Acc", "t[16,32]bf16 @Left", "t[32,16]bf16 @Right"],
            "accumulator of type FP32",
        ),
        ("tile.matmul_acc", ["t[8,16]fp32 @Acc", "t[16,32]bf16 @Left", "t[32,16]bf16 @Right"], "accumulator of shape"),
        ("tile.gemv", ["t[2,32]fp16 @Left", "t[32,16]fp16 @Right"], "exactly one row"),
        ("tensor.matmul", ["T[16,32]fp32", "T[16,8]fp32"], "equal inner extents"),
    ],
)
def test_products_refused(op: str, args: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        infer(op, args)


# operands of the wrong number or kind


@pytest.mark.parametrize(
    ("op", "args", "error", "why"),
    [
        ("tile.add", ["t[4,8]fp32"], ValueError, r"requires 2 operand\(s\) \(lhs, rhs\), but got 1"),
        ("tile.slice", ["t[4,8]fp32"], ValueError, r"requires 3 to 5 operand\(s\)"),
        ("tile.add", ["t[4,8]fp32", "T[4,8]fp32"], TypeError, "a tile as operand 'rhs'"),
        ("tensor.adds", ["T[4,8]fp32", "T[4,8]fp32"], TypeError, "a scalar as operand 'rhs'"),
        ("tile.cast", ["t[4,8]fp32"], ValueError, "requires the keyword 'target_type'"),
    ],
)
def test_wrong_operands(op: str, args: list[str], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        infer(op, args)


@pytest.mark.parametrize("op", ["tensor.row_sum", "tensor.col_max", "tensor.row_argmin"])
def test_empty_reduction_is_refused(op: str) -> None:
    with pytest.raises(ValueError, match="not empty"):
        infer(op, ["T[16,16]fp32 v[16,0]"])


def test_pairs_of_lanes() -> None:
    assert describe(infer("tile.aiv_shard", ["t[17,64]fp32 @Acc"], {"split": 3})) == _tile([9, 64])
    assert describe(infer("tile.aic_gather", ["t[9,64]fp32"], {"split": 1})) == _tile([18, 64], memory="Mat")
    assert describe(infer("tile.aiv_shard", ["t[16,64]fp32 v[16,15] @Acc"], {"split": 2})) == _tile(
        [16, 32], valid=[16, 8]
    )
    with pytest.raises(ValueError, match="takes split"):
        infer("tile.aiv_shard", ["t[16,64]fp32 @Acc"], {"split": 7})
