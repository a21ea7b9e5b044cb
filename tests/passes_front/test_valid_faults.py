"""Valid regions and padding that were once lost: every stage runs and gives the expected numbers."""

from __future__ import annotations

import pytest
import torch

from pytest_pypto.pypto.language.parser import parse
from tests.passes_back.whole import check_stages, execute, out, program, randn

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])


@PLATFORMS
def test_a_reshape_keeps_the_valid_rows(platform: str) -> None:
    text = program(
        "x: [1, 8, 16] FP32\no: [8, 16] FP32 Out",
        "t = pl.slice(x, [1, 8, 16], [0, 0, 0], valid_shape=[1, 5, 16])\n"
        "o = pl.assemble(o, pl.exp(pl.reshape(t, [8, 16])), [0, 0])",
    )
    x, want = randn(1, 8, 16), out(8, 16)
    want[:5] = x[0, :5].exp()
    check_stages(text, {"x": x, "o": out(8, 16)}, {"o": want}, platform)


@PLATFORMS
def test_a_dynamic_valid_length(platform: str) -> None:
    text = program(
        "x: [8, 64] FP32\nlens: [1] INT32\no: [8, 64] FP32 Out",
        "n = pl.cast(pl.read(lens, [0]), pl.INDEX)\nt = pl.slice(x, [8, 64], [0, 0], valid_shape=[8, n])\n"
        "o = pl.assemble(o, pl.neg(t), [0, 0])",
    )
    x, want = randn(8, 64), out(8, 64)
    want[:, :50] = -x[:, :50]
    lens = torch.tensor([50], dtype=torch.int32)
    check_stages(text, {"x": x, "lens": lens, "o": out(8, 64)}, {"o": want}, platform)


@PLATFORMS
@pytest.mark.parametrize("columns", [50, 64, 1])
def test_the_greatest_of_valid_negatives(platform: str, columns: int) -> None:
    text = program(
        "x: [8, 64] FP32\no: [8, 1] FP32 Out",
        f"t = pl.slice(x, [8, 64], [0, 0], valid_shape=[8, {columns}])\no = pl.assemble(o, pl.row_max(t), [0, 0])",
    )
    x = -1 - randn(8, 64).abs()
    want = x[:, :columns].max(1, keepdim=True).values
    check_stages(text, {"x": x, "o": out(8, 1)}, {"o": want}, platform)


@PLATFORMS
def test_padding_with_the_least_value(platform: str) -> None:
    text = program(
        "x: [8, 40] FP32\no: [8, 64] FP32 Out\nq: [8, 1] FP32 Out",
        "t = pl.slice(x, [8, 64], [0, 0], valid_shape=[8, 40], clamp=True, pad_value=pl.PadValue.min)\n"
        "q = pl.assemble(q, pl.row_max(pl.fillpad(t, pad_value=pl.PadValue.min)), [0, 0])\n"
        "o = pl.assemble(o, pl.fillpad(t, pad_value=pl.PadValue.zero), [0, 0])",
    )
    x, want = -1 - randn(8, 40).abs(), torch.zeros(8, 64)
    want[:, :40] = x
    most = x.max(1, keepdim=True).values
    check_stages(text, {"x": x, "o": out(8, 64), "q": out(8, 1)}, {"o": want, "q": most}, platform)


@PLATFORMS
def test_a_product_of_few_valid_rows(platform: str) -> None:
    text = program(
        "x: [16, 32] FP32\nw: [32, 16] FP32\no: [16, 16] FP32 Out",
        "t = pl.slice(x, [16, 32], [0, 0], valid_shape=[5, 32])\no = pl.assemble(o, pl.matmul(t, w), [0, 0])",
    )
    x, w = randn(16, 32), randn(32, 16, seed=1)
    found = check_stages(text, {"x": x, "w": w, "o": out(16, 16)}, {}, platform)
    for name, node in found.items():
        rows = execute(node, {"x": x, "w": w, "o": out(16, 16)})["o"][:5]
        assert torch.allclose(rows, x[:5] @ w, atol=1e-4), name


@PLATFORMS
def test_columns_beyond_the_valid_ones_take_no_part_in_a_product(platform: str) -> None:
    text = program(
        "x: [16, 32] FP32\nw: [32, 16] FP32\no: [16, 16] FP32 Out",
        "t = pl.slice(x, [16, 32], [0, 0], valid_shape=[16, 20])\n"
        "u = pl.slice(w, [32, 16], [0, 0], valid_shape=[20, 16])\n"
        "o = pl.assemble(o, pl.matmul(t, u), [0, 0])",
    )
    x, w = randn(16, 32), randn(32, 16, seed=1)
    want = x[:, :20] @ w[:20]
    x[:, 20:] = float("nan")
    check_stages(text, {"x": x, "w": w, "o": out(16, 16)}, {"o": want}, platform)


@PLATFORMS
@pytest.mark.parametrize("rank", [0, 1])
def test_an_offset_that_is_negative_where_it_is_not_used(platform: str, rank: int) -> None:
    text = program(
        "x: [8, 16] FP32\nwho: [1] INT32\no: [16, 16] FP32 InOut",
        "rank = pl.cast(pl.read(who, [0]), pl.INDEX)\nif rank > 0:\n"
        "    o = pl.assemble(o, pl.slice(x, [8, 16], [0, 0]), [(rank - 1) * 8, 0])",
    )
    x, want = randn(8, 16), out(16, 16)
    if rank:
        want[:8] = x
    who = torch.tensor([rank], dtype=torch.int32)
    check_stages(text, {"x": x, "who": who, "o": out(16, 16)}, {"o": want}, platform)


@pytest.mark.parametrize("valid", ["[64, 68]", "[65, 64]", "[64]"])
def test_a_valid_shape_outside_the_box_is_refused(valid: str) -> None:
    text = program(
        "x: [64, 64] FP32\no: [64, 64] FP32 Out",
        f"t = pl.slice(x, [64, 64], [0, 0], valid_shape={valid})\no = pl.assemble(o, pl.exp(t), [0, 0])",
    )
    with pytest.raises(Exception, match="valid"):
        parse(text)
