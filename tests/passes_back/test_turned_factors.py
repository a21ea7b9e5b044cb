"""Factors with rows and columns exchanged, and factors that are pages of a batch, on extents of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pytest_pypto.pypto.codegen.errors import CodegenError
from pytest_pypto.pypto.passes._util import PassError

from .whole import check_device, check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
RAGGED = [(16, 33, 16), (24, 32, 40), (17, 32, 16), (8, 32, 16), (16, 32, 5)]


def half(*shape: int, seed: int = 0) -> torch.Tensor:
    return randn(*shape, seed=seed).half()


def check(text: str, inputs: dict[str, torch.Tensor], want: torch.Tensor, platform: str, folder: Path) -> None:
    """Every stage and the device give `want`; cells outside keep the sentinel."""
    inputs = inputs | {"o": out(*want.shape)}
    check_stages(text, inputs, {"o": want}, platform)
    check_device(text, inputs, {"o": want}, platform, folder)


def product(a: torch.Tensor, b: torch.Tensor, body: str, shape: list[int]) -> str:
    params = f"a: {list(a.shape)} FP16\nb: {list(b.shape)} FP16\no: {shape} FP32 Out"
    return program(params, body)


@PLATFORMS
@pytest.mark.parametrize("turned", [(True, False), (False, True), (True, True)], ids=["a", "b", "both"])
@pytest.mark.parametrize("extents", [*RAGGED, (32, 32, 32)], ids=str)
def test_turned(extents: tuple[int, int, int], turned: tuple[bool, bool], platform: str, tmp_path: Path) -> None:
    m, k, n = extents
    a = half(k, m) if turned[0] else half(m, k)
    b = half(n, k, seed=1) if turned[1] else half(k, n, seed=1)
    flags = f"a_trans={turned[0]}, b_trans={turned[1]}"
    text = product(a, b, f"o = pl.assemble(o, pl.matmul(a, b, {flags}, out_dtype=pl.FP32), [0, 0])", [m, n])
    left, right = (a.float().T if turned[0] else a.float()), (b.float().T if turned[1] else b.float())
    check(text, {"a": a, "b": b}, left @ right, platform, tmp_path)


@PLATFORMS
def test_whole_boxes_are_not_loaded_again(platform: str) -> None:
    for n, view in ((32, True), (24, False)):
        a, b = half(16, 32), half(n, 32)
        found = stages(
            product(a, b, "o = pl.assemble(o, pl.matmul(a, b, b_trans=True, out_dtype=pl.FP32), [0, 0])", [16, n]),
            platform,
        )
        last = str(list(found.values())[-1])
        assert ("tile.transpose_view" in last) is view
        assert ("tensor.view" in last) is not view


@PLATFORMS
def test_windows(platform: str, tmp_path: Path) -> None:
    a, b = half(17, 66), half(19, 66, seed=1)
    body = """
acc = pl.matmul(pl.slice(a, [17, 33], [0, 0]), pl.slice(b, [19, 33], [0, 0]), b_trans=True, out_dtype=pl.FP32)
for i in pl.range(1, 2):
    acc = pl.matmul_acc(acc, pl.slice(a, [17, 33], [0, i * 33]), pl.slice(b, [19, 33], [0, i * 33]), b_trans=True)
o = pl.assemble(o, acc, [0, 0])"""
    check(product(a, b, body, [17, 19]), {"a": a, "b": b}, a.float() @ b.float().T, platform, tmp_path)


@PLATFORMS
def test_valid_part_of_a_window(platform: str, tmp_path: Path) -> None:
    a, b = half(40, 32), half(24, 32, seed=1)
    body = """
l = pl.slice(a, [32, 32], [8, 0], valid_shape=[17, 32])
r = pl.slice(b, [8, 32], [0, 0], valid_shape=[5, 32])
o = pl.assemble(o, pl.matmul(l, r, b_trans=True, out_dtype=pl.FP32), [8, 0])"""
    want = out(40, 24)
    want[8:25, :5] = a[8:25].float() @ b[:5].float().T
    check(product(a, b, body, [40, 24]), {"a": a, "b": b}, want, platform, tmp_path)


@PLATFORMS
@pytest.mark.parametrize("extents", [(16, 32, 16), (17, 33, 19), (8, 32, 8)], ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["plain", "turned"])
def test_batch(extents: tuple[int, int, int], turned: bool, platform: str, tmp_path: Path) -> None:
    m, k, n = extents
    a, b = half(3, m, k), half(3, n, k, seed=1) if turned else half(3, k, n, seed=1)
    body = f"o = pl.assemble(o, pl.matmul(a, b, b_trans={turned}, out_dtype=pl.FP32), [0, 0, 0])"
    want = a.float() @ (b.float().mT if turned else b.float())
    check(product(a, b, body, [3, m, n]), {"a": a, "b": b}, want, platform, tmp_path)


@PLATFORMS
@pytest.mark.parametrize("extents", [(16, 32, 16), (17, 33, 19), (8, 32, 8)], ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["plain", "turned"])
def test_pages(extents: tuple[int, int, int], turned: bool, platform: str, tmp_path: Path) -> None:
    m, k, n = extents
    a, b = half(3, m, k), half(3, n, k, seed=1) if turned else half(3, k, n, seed=1)
    body = f"""
for i in pl.range(3):
    p = pl.matmul(a[i], b[i], b_trans={turned}, out_dtype=pl.FP32)
    o = pl.assemble(o, pl.reshape(p, [1, {m}, {n}]), [i, 0, 0])"""
    want = a.float() @ (b.float().mT if turned else b.float())
    check(product(a, b, body, [3, m, n]), {"a": a, "b": b}, want, platform, tmp_path)


@PLATFORMS
def test_page_times_matrix(platform: str, tmp_path: Path) -> None:
    a, b = half(3, 16, 32), half(32, 16, seed=1)
    text = product(a, b, "o = pl.assemble(o, pl.matmul(a[1], b, out_dtype=pl.FP32), [0, 0])", [16, 16])
    check(text, {"a": a, "b": b}, a[1].float() @ b.float(), platform, tmp_path)


@PLATFORMS
def test_value_on_the_core_without_whole_boxes(platform: str) -> None:
    a, b = half(17, 33), half(16, 33)
    body = "o = pl.assemble(o, pl.matmul(a, pl.add(b, b), b_trans=True, out_dtype=pl.FP32), [0, 0])"
    with pytest.raises(PassError, match=r":8:.*\[16, 33\] FP16.*\[16, 16\].*pl\.transpose") as caught:
        stages(product(a, b, body, [17, 16]), platform)
    assert caught.value.span is not None


@PLATFORMS
@pytest.mark.parametrize(
    ("view", "k"),
    [("pl.tile.transpose_view(m)", 33), ("pl.tile.reshape(m, [24, 32])", 24)],
    ids=["transpose", "reshape"],
)
def test_bytes_in_another_layout(view: str, k: int, platform: str, tmp_path: Path) -> None:
    columns = {33: 33, 24: 48}[k]
    a, b = half(16, k), half(16, columns, seed=1)
    body = f"""
l = pl.load(a, [0, 0], [16, {k}], target_memory=pl.Mem.Mat)
m = pl.load(b, [0, 0], [16, {columns}], target_memory=pl.Mem.Mat)
t = {view}
o = pl.store(pl.matmul(l, t), [0, 0], o)"""
    n = 16 * columns // k
    with pytest.raises(CodegenError, match=r":10:.*whole boxes.*pl\.move"):
        check_device(product(a, b, body, [16, n]), {"a": a, "b": b, "o": out(16, n)}, {}, platform, tmp_path)


@PLATFORMS
def test_ragged_rows_in_another_shape(platform: str, tmp_path: Path) -> None:
    """Neither form has whole boxes: both lie row after row, and the reshape is one of rows."""
    a, b = half(16, 33), half(16, 33, seed=1)
    body = """
l = pl.load(a, [0, 0], [16, 33], target_memory=pl.Mem.Mat)
m = pl.load(b, [0, 0], [16, 33], target_memory=pl.Mem.Mat)
o = pl.store(pl.matmul(l, pl.tile.reshape(m, [33, 16])), [0, 0], o)"""
    want = a.float() @ b.float().reshape(33, 16)
    check(product(a, b, body, [16, 16]), {"a": a, "b": b}, want, platform, tmp_path)


@PLATFORMS
@pytest.mark.parametrize(("shape", "at"), [((16, 33), "[0, 0]"), ((3, 16, 32), "[0, 0, 0]")], ids=str)
def test_factor_that_the_vector_core_has_just_written(
    shape: tuple[int, ...], at: str, platform: str, tmp_path: Path
) -> None:
    """The cube core waits for the store, also when it reads the memory through a view."""
    a, b = half(*shape), half(*shape, seed=1)
    want = a.float() @ (b + b).float().mT
    text = program(
        f"a: {list(shape)} FP16\nb: {list(shape)} FP16\nw: {list(shape)} FP16 Out\no: {list(want.shape)} FP32 Out",
        f"w = pl.assemble(w, pl.add(b, b), {at})\n"
        f"o = pl.assemble(o, pl.matmul(a, w, b_trans=True, out_dtype=pl.FP32), {at})",
    )
    check(text, {"a": a, "b": b, "w": out(*shape, dtype=torch.float16)}, want, platform, tmp_path)
