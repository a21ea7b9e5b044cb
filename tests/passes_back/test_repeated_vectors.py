"""Row and column vectors beside a matrix, for every element type and operation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .whole import check_device, check_stages, out, program, randn

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
DTYPES = {
    "BF16": torch.bfloat16,
    "FP16": torch.float16,
    "FP32": torch.float32,
    "INT16": torch.int16,
    "INT32": torch.int32,
}
CALLS = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}
SHAPES = [((9, 17), (9, 1)), ((9, 1), (9, 17)), ((9, 17), (1, 17))]


@PLATFORMS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shapes", "call"), [*((s, "add") for s in SHAPES), *((SHAPES[0], c) for c in list(CALLS)[1:])], ids=str
)
def test_vector(
    shapes: tuple[tuple[int, int], tuple[int, int]], dtype: str, call: str, platform: str, tmp_path: Path
) -> None:
    """One rounding, so the results are equal to torch's."""
    kind = DTYPES[dtype]
    x, y = (randn(*shape, seed=i, scale=20.0).to(kind) for i, shape in enumerate(shapes))
    params = f"x: {list(shapes[0])} {dtype}\ny: {list(shapes[1])} {dtype}\no: [9, 17] {dtype} Out"
    text = program(params, f"o = pl.assemble(o, pl.{call}(x, y), [0, 0])")
    want = {"o": CALLS[call](x, y)}
    inputs = {"x": x, "y": y, "o": out(9, 17, dtype=kind)}
    check_stages(text, inputs, want, platform, tolerance=0.0)
    check_device(text, inputs, want, platform, tmp_path, tolerance=0.0)
