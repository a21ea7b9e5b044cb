"""Gathers and scatters of rows, compiled and run on the simulated device against torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pytest_pypto.pypto import ir
from pytest_pypto.pypto.language.parser.modules import parse

BOTH = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])


def build(body: str, params: str, platform: str, out: Path) -> ir.CompiledProgram:
    """A program whose only kernel is `body`."""
    lines = "\n".join(f"            {line}" for line in body.splitlines())
    source = (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n    @pl.function\n"
        f"    def main(self, {params}):\n        with pl.at(level=pl.Level.CORE_GROUP):\n{lines}\n        return o\n"
    )
    return ir.compile(parse(source), platform=platform, output_dir=str(out), skip_ptoas=True, dump_passes=False)


def pages() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A paged table, indices, the block table, and the rows they select."""
    generator = torch.Generator().manual_seed(3)
    table = torch.randn(64, 32, generator=generator).bfloat16()
    indices = torch.randperm(64, generator=generator)[:16].int()
    blocks = torch.randperm(8, generator=generator).int()
    rows = table[(blocks[(indices // 8).long()] * 8 + indices % 8).long()]
    return table, indices, blocks, rows


PAGED = "x: pl.Tensor[[64, 32], pl.BF16], i: pl.Tensor[[16], pl.INT32], t: pl.Tensor[[8], pl.INT32], "


@BOTH
def test_pages_as_rows(platform: str, tmp_path: Path) -> None:
    table, indices, blocks, rows = pages()
    weight, out = torch.randn(32, 48).bfloat16(), torch.zeros(16, 48)
    params = PAGED + "w: pl.Tensor[[32, 48], pl.BF16], o: pl.Out[pl.Tensor[[16, 48], pl.FP32]]"
    body = "k = pl.paged_gather(x, i, t, block_size=8, size=32, max_indices=16)\n"
    build(body + "o[:] = pl.matmul(k, w, out_dtype=pl.FP32)", params, platform, tmp_path)(
        table, indices, blocks, weight, out
    )
    torch.testing.assert_close(out, rows.float() @ weight.float(), rtol=1e-5, atol=1e-5)


@BOTH
def test_pages_as_columns(platform: str, tmp_path: Path) -> None:
    table, indices, blocks, rows = pages()
    left, out = torch.randn(16, 32).bfloat16(), torch.zeros(16, 16)
    params = PAGED + "w: pl.Tensor[[16, 32], pl.BF16], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]"
    body = "k = pl.paged_gather(x, i, t, block_size=8, size=32, max_indices=16, is_trans=True)\n"
    build(body + "o[:] = pl.matmul(w, k, out_dtype=pl.FP32)", params, platform, tmp_path)(
        table, indices, blocks, left, out
    )
    torch.testing.assert_close(out, left.float() @ rows.float().T, rtol=1e-5, atol=1e-5)


def updated(x: torch.Tensor, index: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """`x` with rows replaced one after the other."""
    out = x.clone()
    for place, row in enumerate(index.flatten().tolist()):
        out[row] = rows[place]
    return out


UPDATE = (
    "x: pl.Tensor[[16, 32], pl.FP32], i: pl.Tensor[[2, 4], pl.INT32], s: pl.Tensor[[8, 32], pl.FP32], "
    "o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]"
)


@BOTH
@pytest.mark.parametrize("index", [[[1, 5, 9, 15], [0, 2, 4, 6]], [[3, 3, 3, 7], [7, 0, 3, 15]]])
def test_rows_are_replaced_and_a_later_one_wins(platform: str, index: list[list[int]], tmp_path: Path) -> None:
    x, rows, out = torch.randn(16, 32), torch.randn(8, 32), torch.zeros(16, 32)
    at = torch.tensor(index, dtype=torch.int32)
    build("o[:] = pl.scatter_update(x, i, s)", UPDATE, platform, tmp_path)(x, at, rows, out)
    assert torch.equal(out, updated(x, at, rows))


def test_an_update_leaves_the_old_value_alone(tmp_path: Path) -> None:
    x, rows, out = torch.randn(16, 32), torch.randn(8, 32), torch.zeros(16, 32)
    at = torch.tensor([[1, 5, 9, 15], [0, 2, 4, 6]], dtype=torch.int32)
    body = "y = pl.scatter_update(x, i, s)\no[:] = pl.sub(y, x)"
    build(body, UPDATE, "a2a3sim", tmp_path)(x, at, rows, out)
    assert torch.equal(out, updated(x, at, rows) - x)


def test_a_masked_scatter_leaves_the_old_value_alone(tmp_path: Path) -> None:
    x, d, out = torch.randn(16, 32), torch.randn(16, 64), torch.zeros(16, 64)
    params = "x: pl.Tensor[[16, 32], pl.FP32], d: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
    body = "y = pl.tensor.scatter_mask(x, d, mask_pattern=1)\no[:] = pl.sub(y, d)"
    build(body, params, "a2a3sim", tmp_path)(x, d, out)
    want = d.clone()
    want[:, ::2] = x
    assert torch.equal(out, want - d)


POSITIONS = "o: pl.InOut[pl.Tensor[[16, 32], pl.INT32]], n: pl.Out[pl.Tensor[[1, 16], pl.INT32]]"
COMPARE = f"x: pl.Tensor[[16, 32], pl.FP32], {POSITIONS}"


@BOTH
@pytest.mark.parametrize(("mode", "test"), [("gt", torch.gt), ("le", torch.le)])
def test_positions_and_counts(platform: str, mode: str, test: object, tmp_path: Path) -> None:
    x, out, counts = torch.randn(16, 32), torch.zeros(16, 32, dtype=torch.int32), torch.zeros(1, 16, dtype=torch.int32)
    body = f'a, b = pl.tensor.gather_compare(x, 0.25, cmp_mode="{mode}", out_cols=32)\no[:] = a\nn[:] = b'
    build(body, COMPARE, platform, tmp_path)(x, out, counts)
    hits = test(x, 0.25)  # type: ignore[operator]
    assert counts[0].tolist() == hits.sum(1).tolist()
    for row in range(16):
        found = hits[row].nonzero().flatten().tolist()
        assert out[row, : len(found)].tolist() == found


def test_positions_do_not_share_bytes_with_what_is_compared(tmp_path: Path) -> None:
    """The instruction reads its operand while it writes both results."""
    body = 'a, b = pl.tensor.gather_compare(x, 0.25, cmp_mode="gt", out_cols=32)\no[:] = a\nn[:] = b'
    build(body, COMPARE, "a2a3sim", tmp_path)
    (kernel,) = (tmp_path / "kernels").rglob("*.pto")
    places = [line.split("addr = ")[1].split()[0] for line in kernel.read_text().splitlines() if "alloc_tile" in line]
    assert len(places) == 4
    assert len(set(places)) == 4
