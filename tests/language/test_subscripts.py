"""Subscripts as reads, slices, windows and tuple items."""

from __future__ import annotations

import pytest

from .marked import function, kernel, printed_body


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("x[1, 2]", "pl.Scalar[pl.FP32] = pl.tensor.read(x, [1, 2])"),
        ("x[k, 0]", "pl.Scalar[pl.FP32] = pl.tensor.read(x, [k, 0])"),
        ("x[0:16]", "pl.Tensor[[16, 64], pl.FP32] = pl.tensor.slice(x, [16, 64], [0, 0])"),
        ("x[16:32, 8:16]", "pl.Tensor[[16, 8], pl.FP32] = pl.tensor.slice(x, [16, 8], [16, 8])"),
        ("x[:, 32:]", "pl.Tensor[[64, 32], pl.FP32] = pl.tensor.slice(x, [64, 32], [0, 32])"),
        ("x[3]", "pl.Tensor[[64], pl.FP32] = pl.tensor.slice(x, [1, 64], [3, 0], [], [0])"),
        ("x[k:k + 8, 3]", "pl.Tensor[[8], pl.FP32] = pl.tensor.slice(x, [8, 1], [k, 3], [], [1])"),
        ("x[0:k]", "pl.Tensor[[k, 64], pl.FP32] = pl.tensor.slice(x, [k, 64], [0, 0])"),
        ("(x, k)[1]", "pl.Scalar[pl.INDEX] = [x, k][1]"),
    ],
)
def test_read(written: str, printed: str) -> None:
    assert printed_body(function(f"z = {written}")) == [f"z: {printed}"]


def test_tiles() -> None:
    body = "t = pl.load(x, [0, 0], [32, 64])\na = t[0:16, :]\nb = t[0, 1]\nt[0:16, :] = a\nc = t[0:k]"
    assert [line.partition(": ")[2] for line in printed_body(kernel(body))[1:]] == [
        "pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.slice(t, [16, 64], [0, 0])",
        "pl.Scalar[pl.FP32] = pl.tile.read(t, [0, 1])",
        "pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec] = pl.tile.assemble(t, a, [0, 0])",
        "pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[k, 64])] = "
        "pl.tile.slice(t, [32, 64], [0, 0], [k, 64])",
    ]


def test_a_tile_keeps_two_dimensions() -> None:
    with pytest.warns(UserWarning, match="a tile has at least 2 dimensions"):
        lines = printed_body(kernel("t = pl.load(x, [0, 0], [32, 64])\na = t[3]"))
    assert lines[1] == "a: pl.Tile[[1, 64], pl.FP32, pl.Mem.Vec] = pl.tile.slice(t, [1, 64], [3, 0])"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("x[:] = x", "pl.tensor.assemble(x, x, [0, 0])"),
        (
            "x[k:k + 16, 0:8] = pl.slice(x, [16, 8], [0, 0])",
            "pl.tensor.assemble(x, pl.tensor.slice(x, [16, 8], [0, 0]), [k, 0])",
        ),
        (
            "x[2] = x[3]",
            "pl.tensor.assemble(x, pl.tensor.reshape(pl.tensor.slice(x, [1, 64], [3, 0], [], [0]), [1, 64]), [2, 0])",
        ),
    ],
)
def test_write(written: str, printed: str) -> None:
    assert printed_body(function(written)) == [f"x: pl.Tensor[[64, 64], pl.FP32] = {printed}"]


def test_arrays() -> None:
    assert printed_body(function("a = pl.array.create(4, pl.INT32)\na[0] = n\na[1] = 3\nb = a[k]")) == [
        "a: pl.Array[4, pl.INT32] = pl.array.create(4, dtype=pl.INT32)",
        "a: pl.Array[4, pl.INT32] = pl.array.update_element(a, 0, n)",
        "a: pl.Array[4, pl.INT32] = pl.array.update_element(a, 1, pl.const(3, pl.INT32))",
        "b: pl.Scalar[pl.INT32] = pl.array.get_element(a, k)",
    ]


def test_tuples() -> None:
    pair = "pl.Tuple[pl.Tensor[[64, 64], pl.FP32], pl.Scalar[pl.INDEX]]"
    assert printed_body(function("a, b = (x, k)\nt = (a, b)\nc = t[0]")) == [
        f"_tuple_tmp: {pair} = [x, k]",
        "a: pl.Tensor[[64, 64], pl.FP32] = _tuple_tmp[0]",
        "b: pl.Scalar[pl.INDEX] = _tuple_tmp[1]",
        f"t: {pair} = [a, b]",
        "c: pl.Tensor[[64, 64], pl.FP32] = t[0]",
    ]


def test_items_of_outer_lists_are_constants() -> None:
    assert printed_body(
        function("y = pl.slice(x, [S[1], 64], [S[0] - 64, 0])\nc = S[-1] * k", head="S = [64, 32]\n")
    ) == [
        "y: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.slice(x, [32, 64], [0, 0])",
        "c: pl.Scalar[pl.INDEX] = 32 * k",
    ]
