"""Products in kernels: tiling for the cube core, turned operands, batches, accumulators, bias."""

from __future__ import annotations

import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.types import TileType
from pytest_pypto.pypto.ir.visitor import calls_in
from pytest_pypto.pypto.passes._util import PassError
from tests.passes_back.whole import check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
TORCH = {"FP32": torch.float32, "BF16": torch.bfloat16, "FP16": torch.float16}


@PLATFORMS
@pytest.mark.parametrize("dtype", ["FP32", "BF16"])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(16, 16, 16), (128, 512, 128), (64, 512, 192), (16, 96, 48), (128, 304, 64), (256, 256, 256), (1, 64, 32)],
)
def test_products_of_any_size(platform: str, dtype: str, m: int, k: int, n: int) -> None:
    text = program(
        f"x: [{m}, {k}] {dtype}\nw: [{k}, {n}] {dtype}\no: [{m}, {n}] FP32 Out",
        "o = pl.assemble(o, pl.matmul(x, w, out_dtype=pl.FP32), [0, 0])",
    )
    x, w = randn(m, k).to(TORCH[dtype]), randn(k, n, seed=1).to(TORCH[dtype])
    found = check_stages(text, {"x": x, "w": w, "o": out(m, n)}, {"o": x.float() @ w.float()}, platform, 2e-3)
    last = list(found.values())[-1]
    for func in last.functions.values():
        for call in calls_in(func.body):
            if call.op.name.startswith("tile.matmul"):
                sizes = [_bytes(a) for a in call.args if isinstance(a.type, TileType)]
                assert max(sizes[-2:]) <= 65536


def _bytes(x: e.Expr) -> int:
    assert isinstance(x.type, TileType)
    dims = e.static_dims(x.type.shape)
    assert dims is not None
    return dims[0] * dims[1] * x.type.dtype.get_byte()


@PLATFORMS
@pytest.mark.parametrize(("a_trans", "b_trans"), [(True, False), (False, True), (True, True)])
def test_turned_operands(platform: str, a_trans: bool, b_trans: bool) -> None:
    a_shape, b_shape = ("64, 32" if a_trans else "32, 64"), ("48, 64" if b_trans else "64, 48")
    text = program(
        f"x: [{a_shape}] FP32\nw: [{b_shape}] FP32\no: [32, 48] FP32 Out",
        f"o = pl.assemble(o, pl.matmul(x, w, a_trans={a_trans}, b_trans={b_trans}), [0, 0])",
    )
    x, w = (randn(*map(int, s.split(", ")), seed=i) for i, s in enumerate((a_shape, b_shape)))
    want = (x.T if a_trans else x) @ (w.T if b_trans else w)
    check_stages(text, {"x": x, "w": w, "o": out(32, 48)}, {"o": want}, platform)


@PLATFORMS
def test_a_sum_of_products_in_a_loop(platform: str) -> None:
    text = program(
        "x: [32, 256] FP32\nw: [256, 32] FP32\no: [32, 32] FP32 Out",
        "c = pl.create_tensor([32, 32], dtype=pl.FP32)\nfor k in pl.range(4):\n"
        "    a = pl.slice(x, [32, 64], [0, k * 64])\n    b = pl.slice(w, [64, 32], [k * 64, 0])\n"
        "    c = pl.matmul_acc(c, a, b, init_cond=k == 0)\n"
        "o = pl.assemble(o, c, [0, 0])",
    )
    x, w = randn(32, 256), randn(256, 32, seed=1)
    check_stages(text, {"x": x, "w": w, "o": out(32, 32)}, {"o": x @ w}, platform)


@PLATFORMS
@pytest.mark.parametrize(("left", "right"), [((4, 16, 32), (4, 32, 16)), ((2, 2, 16, 32), (2, 2, 32, 16))])
def test_batches_of_products(platform: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    shape = [*left[:-1], right[-1]]
    text = program(
        f"x: {list(left)} FP32\nw: {list(right)} FP32\no: {shape} FP32 Out",
        f"o = pl.assemble(o, pl.matmul(x, w), {[0] * len(shape)})",
    )
    x, w = randn(*left), randn(*right, seed=1)
    check_stages(text, {"x": x, "w": w, "o": out(*shape)}, {"o": x @ w}, platform)


@PLATFORMS
def test_work_on_tiles_of_three_dimensions(platform: str) -> None:
    text = program(
        "x: [4, 16, 32] FP32\nb: [4, 16, 1] FP32\no: [4, 16, 32] FP32 Out\ns: [4, 16, 1] FP32 Out",
        "t = pl.mul(pl.add(x, b), 2.0)\no = pl.assemble(o, pl.exp(t), [0, 0, 0])\n"
        "s = pl.assemble(s, pl.row_sum(t), [0, 0, 0])",
    )
    x, b = randn(4, 16, 32), randn(4, 16, 1, seed=1)
    t = (x + b) * 2
    values = {"x": x, "b": b, "o": out(4, 16, 32), "s": out(4, 16, 1)}
    check_stages(text, values, {"o": t.exp(), "s": t.sum(-1, keepdim=True)}, platform)


@PLATFORMS
def test_one_operand_used_by_both_cores(platform: str) -> None:
    text = program(
        "x: [32, 32] FP32\nw: [32, 32] FP32\no: [32, 32] FP32 Out",
        "c = pl.matmul(x, w)\no = pl.assemble(o, pl.add(c, x), [0, 0])",
    )
    x, w = randn(32, 32), randn(32, 32, seed=1)
    check_stages(text, {"x": x, "w": w, "o": out(32, 32)}, {"o": x @ w + x}, platform)


@PLATFORMS
@pytest.mark.parametrize("dtype", ["BF16", "FP16"])
@pytest.mark.parametrize("to", ["FP32", "BF16", "FP16"])
def test_a_product_is_rounded_to_its_own_type_wherever_it_is_stored(platform: str, dtype: str, to: str) -> None:
    text = program(
        f"x: [32, 32] {dtype}\nw: [32, 32] {dtype}\no: [32, 32] {to} Out",
        "o = pl.assemble(o, pl.matmul(x, w), [0, 0])",
    )
    x, w = randn(32, 32).to(TORCH[dtype]), randn(32, 32, seed=1).to(TORCH[dtype])
    want = (x.float() @ w.float()).to(TORCH[dtype]).to(TORCH[to])
    check_stages(text, {"x": x, "w": w, "o": out(32, 32, dtype=TORCH[to])}, {"o": want}, platform, 1e-6)


@PLATFORMS
@pytest.mark.parametrize("to", ["INT8", "INT32"])
def test_sums_of_int8_need_room(platform: str, to: str) -> None:
    params = f"x: [32, 64] INT8\nw: [64, 32] INT8\no: [32, 32] {to} Out"
    small = program(params, "o = pl.assemble(o, pl.matmul(x, w), [0, 0])")
    with pytest.raises(PassError, match=r":8:.*gives INT8.*out_dtype=pl.INT32"):
        stages(small, platform)
    if to == "INT32":
        text = small.replace("pl.matmul(x, w)", "pl.matmul(x, w, out_dtype=pl.INT32)")
        x, w = torch.full((32, 64), 100, dtype=torch.int8), torch.full((64, 32), 100, dtype=torch.int8)
        values = {"x": x, "w": w, "o": torch.zeros(32, 32, dtype=torch.int32)}
        check_stages(text, values, {"o": torch.full((32, 32), 640000, dtype=torch.int32)}, platform, 0)
