"""Two independent opinions: every operator, compiled and run on the device, against the oracle of the source program.

Whole boxes and ragged ones; what no valid element reaches must keep its sentinel.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from pytest_pypto.pypto import ir
from pytest_pypto.pypto.debug import torch_codegen
from pytest_pypto.pypto.device import DeviceSettings, run_artifact
from pytest_pypto.pypto.language.parser.modules import parse
from pytest_pypto.pypto.runtime.torch_bridge import as_array

ROWS, COLS = 16, 32
TYPES = {
    "FP32": torch.float32,
    "FP16": torch.float16,
    "BF16": torch.bfloat16,
    "INT32": torch.int32,
    "INT16": torch.int16,
    "INT8": torch.int8,
    "UINT32": torch.uint32,
    "UINT16": torch.uint16,
    "UINT8": torch.uint8,
}
TOLERANCE = {"FP32": 2e-6, "FP16": 1e-3, "BF16": 8e-3}


@dataclass(frozen=True)
class Case:
    """`r = text` on tiles a, b (operands), c (indices) and s (scratch)."""

    text: str
    dtype: str = "FP32"
    out: str = ""
    shape: tuple[int, int] = (ROWS, COLS)
    second: tuple[int, int] = (ROWS, COLS)
    values: str = "any"
    scratch: str = ""
    index: str = ""
    ragged: bool = True

    def __str__(self) -> str:
        return f"{self.text}-{self.dtype}".replace(" ", "")


def cases() -> list[Case]:
    """The table."""
    full, floats, whole = (ROWS, COLS), ("FP32", "FP16", "BF16"), ("INT32", "INT16")
    column, row = (ROWS, 1), (1, COLS)
    found = [Case(f"pl.{n}(a, b)", d) for n in ("add", "sub", "mul", "maximum", "minimum") for d in (*floats, *whole)]
    found += [Case(f"pl.{n}(a, b)", d) for n in ("add", "mul", "minimum") for d in ("INT8", "UINT8", "UINT16")]
    found += [Case(f"pl.{n}(a, b)", d, values="nonzero") for n in ("div", "fmod") for d in ("FP32", "INT32", "INT16")]
    found += [
        Case(f"pl.{n}(a, b)", d, values="small") for n in ("and_", "or_", "shl", "shr") for d in ("INT32", "UINT16")
    ]
    found += [
        Case("pl.tile.xor(a, b, s)", "INT32", scratch="INT32"),
        Case("pl.tile.xors(a, 5, s)", "INT32", scratch="INT32"),
    ]
    found += [Case("pl.tile.rem(a, b, s)", d, values="nonzero", scratch=d) for d in ("FP32", "INT32")]
    found += [Case("pl.tile.prelu(a, b, s)", d, scratch="UINT8") for d in ("FP32", "FP16")]
    found += [Case(f"pl.part_{n}(a, b)") for n in ("add", "mul", "max", "min")]
    found += [Case(f"pl.{n}(a, b, a)", d) for n in ("addc", "subc") for d in ("FP32", "INT32")]
    found += [Case(f"pl.{n}(a, 1.5, b)") for n in ("addsc", "subsc")]
    found += [Case(f"pl.{n}(a, 3.0)", d) for n in ("add", "sub", "mul", "maximum", "minimum") for d in ("FP32", "FP16")]
    found += [Case(f"pl.{n}(a, 3)", "INT16") for n in ("add", "sub", "mul", "ands", "ors", "shls", "shrs")]
    found += [Case("pl.tile.divs(a, 3.0)", d) for d in floats] + [Case("pl.tile.divs(a, 3)", "INT16")]
    found += [Case("pl.fmod(a, 1.5)"), Case("pl.tile.rems(a, 1.5, s)", scratch="FP32"), Case("pl.lrelu(a, 0.1)")]
    found += [Case(f"pl.{n}(a)", d) for n in ("exp", "neg", "abs", "relu") for d in ("FP32", "FP16")]
    found += [Case(f"pl.{n}(pl.mul(a, 9.0))") for n in ("sin", "cos")] + [Case("pl.not_(a)", "INT16")]
    found += [
        Case(f"pl.{n}(a)", d, values="positive") for n in ("log", "sqrt", "rsqrt", "recip") for d in ("FP32", "FP16")
    ]
    for n in ("sum", "max", "min", "prod"):
        found += [Case(f"pl.tile.row_{n}(a, s)", shape=column, scratch="FP32"), Case(f"pl.tile.col_{n}(a)", shape=row)]
    for n in ("argmax", "argmin"):
        found.append(Case(f"pl.tile.row_{n}(a, s)", out="INT32", shape=column, scratch="FP32"))
        found.append(Case(f"pl.tile.col_{n}(a, s)", out="INT32", shape=row, scratch="FP32"))
    for n in ("add", "sub", "mul", "div", "max", "min", "expdif"):
        found.append(Case(f"pl.row_expand_{n}(a, b)", second=column, values="nonzero"))
        found.append(Case(f"pl.col_expand_{n}(a, b)", second=row, values="nonzero"))
    found += [Case("pl.row_expand(a, b)", second=column), Case("pl.col_expand(a, b)", second=row)]
    found += [Case("pl.expands(a, 2.5)")]
    for mode in ("none", "rint", "round", "floor", "ceil", "trunc", "odd"):
        for source, target in (
            ("FP32", "INT32"),
            ("FP32", "BF16"),
            ("FP16", "BF16"),
            ("FP16", "INT8"),
            ("BF16", "INT16"),
        ):
            text = f'pl.cast(a, target_type=pl.{target}, mode="{mode}")'
            found.append(Case(text, source, target, values="ties"))
    found += [Case("pl.cast(a, target_type=pl.FP32)", d, "FP32") for d in ("BF16", "FP16", "INT32", "INT16", "INT8")]
    for k in range(6):
        found.append(Case(f"pl.sel(pl.cmp(a, b, cmp_type={k}), a, b, s)", scratch="UINT8"))
        found.append(Case(f"pl.sel(pl.cmps(a, 0.5, cmp_type={k}), a, b, s)", "FP16", scratch="UINT8"))
    found.append(Case("pl.sels(pl.cmp(a, b, cmp_type=4), a, s, 2.0)", scratch="UINT8"))
    found += [Case("pl.fillpad(a, pad_value=pl.PadValue.max)", d) for d in whole]
    found += [Case("pl.fillpad(a, pad_value=pl.PadValue.zero)", d) for d in floats]
    found += [Case("pl.fillpad_expand(a, [32, 64], pad_value=pl.PadValue.zero)", shape=(32, 64))]
    found += [Case("pl.concat(a, b)", d, shape=(ROWS, 2 * COLS), ragged=False) for d in ("FP32", "BF16")]
    found += [Case("pl.transpose(a, 0, 1)", d, shape=(COLS, ROWS), ragged=False) for d in ("FP32", "FP16")]
    found += [Case("pl.reshape(a, [8, 64])", d, shape=(8, 64), ragged=False) for d in ("FP32", "BF16")]
    found += [Case("pl.tile.slice(a, [8, 16], [4, 16])", shape=(8, 16))]
    found += [Case("pl.tile.assemble(a, pl.tile.slice(b, [8, 16], [0, 0]), [8, 16])", ragged=False)]
    found += [Case("pl.tile.ci(5, [1, 32], dtype=pl.INT32, descending=True)", "INT32", shape=row, ragged=False)]
    found += [Case("pl.tri(-2, [16, 32], [16, 32], dtype=pl.INT32, upper=True)", "INT32", ragged=False)]
    found += [Case("pl.tile.random(1, 2, 3, 4, 5, 6, [16, 32], [16, 32], dtype=pl.UINT32)", "UINT32", ragged=False)]
    found += [Case("pl.tile.gather(a, c, s)", index="flat", scratch="INT32", ragged=False)]
    for k, width in ((1, 16), (2, 16), (5, 8), (7, 32)):
        found.append(Case(f"pl.tile.gather_mask(a, mask_pattern={k})", shape=(ROWS, width), ragged=False))
    found += [Case("pl.tile.scatter(a, b, c)", index="permutation", ragged=False)]
    found += [Case("pl.tile.scatter_mask(a, b, mask_pattern=2)", second=(ROWS, COLS // 2), ragged=False)]
    found += [Case("pl.tile.scatter_update(a, c, b)", second=(8, COLS), index="rows", ragged=False)]
    found += [Case("pl.sort32(a, c)", shape=(ROWS, 2 * COLS), index="numbers", ragged=False)]
    found += [Case("pl.gatherb(a, c)", shape=(ROWS, 64), index="blocks", ragged=False)]
    found += [Case("pl.reinterpret_view(a, dtype=pl.INT32)", out="INT32", shape=full, ragged=False)]
    return found


def operand(case: Case, shape: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """Values that suit the operator."""
    kind = TYPES[case.dtype]
    if kind.is_floating_point:
        x = 2 * torch.randn(shape, generator=generator)
        x = {"positive": x.abs() + 0.1, "nonzero": torch.where(x.abs() < 0.2, 0.7, x)}.get(case.values, x)
        return (torch.round(8 * x) / 2 if case.values == "ties" else x).to(kind)
    low, high = {"small": (0, 9), "nonzero": (-9, 9)}.get(case.values, (-100, 100))
    x = torch.randint(max(low, 0) if case.dtype[0] == "U" else low, high, shape, generator=generator)
    return (torch.where(x == 0, 4, x) if case.values == "nonzero" else x).to(kind)


def indices(case: Case, generator: torch.Generator) -> torch.Tensor:
    """The tensor c."""
    size = ROWS * COLS
    made = {
        "flat": torch.randint(0, size, (ROWS, COLS), generator=generator).int(),
        "permutation": torch.randperm(size, generator=generator).reshape(ROWS, COLS).int(),
        "rows": torch.randperm(ROWS, generator=generator)[:8].reshape(1, 8).int(),
        "numbers": torch.arange(size).reshape(ROWS, COLS).to(torch.uint32),
        "blocks": (32 * torch.randint(0, size * 4 // 32, (ROWS, 8), generator=generator)).to(torch.uint32),
    }
    return made.get(case.index, made["flat"])


def source(case: Case, c: torch.Tensor, ragged: bool) -> str:
    """The program."""
    rows, cols = case.second
    valid = [f", valid_shape=[{min(13, r)}, {min(29, n)}]" if ragged else "" for r, n in ((ROWS, COLS), case.second)]
    types = {v: k for k, v in TYPES.items()}
    loads = [
        f"a = pl.load(x, [0, 0], [{ROWS}, {COLS}]{valid[0]})",
        f"b = pl.load(y, [0, 0], [{rows}, {cols}]{valid[1]})",
    ]
    loads += [f"c = pl.load(z, [0, 0], [{c.shape[0]}, {c.shape[1]}])"] if case.index else []
    if case.scratch:
        high = 32 if "prelu" in case.text else ROWS
        loads.append(f"s = pl.create_tile([{high}, {COLS}], dtype=pl.{case.scratch}, target_memory=pl.Mem.Vec)")
    body = [*loads, f"r = {case.text}", "o = pl.store(r, [0, 0], o)"]
    params = [
        f"x: pl.Tensor[[{ROWS}, {COLS}], pl.{case.dtype}]",
        f"y: pl.Tensor[[{rows}, {cols}], pl.{case.dtype}]",
        f"z: pl.Tensor[[{c.shape[0]}, {c.shape[1]}], pl.{types[c.dtype]}]",
        f"o: pl.Out[pl.Tensor[[{case.shape[0]}, {case.shape[1]}], pl.{case.out or case.dtype}]]",
    ]
    head = "import pypto.language as pl\n\n@pl.program\nclass P:\n    @pl.function\n"
    head += f"    def main(self, {', '.join(params)}):\n        with pl.at(level=pl.Level.CORE_GROUP):\n"
    return head + "".join(f"            {line}\n" for line in body) + "        return o\n"


def boxes() -> list[object]:
    """Every case whole, and ragged where padding may exist; platforms alternate."""
    found: list[object] = []
    for i, case in enumerate(cases()):
        for ragged in (False, True) if case.ragged else (False,):
            platform = ("a2a3sim", "a5sim")[(i + ragged) % 2]
            found.append(
                pytest.param(case, ragged, platform, id=f"{case}-{'ragged' if ragged else 'whole'}-{platform}")
            )
    return found


@pytest.mark.parametrize(("case", "ragged", "platform"), boxes())
def test_device_agrees_with_the_oracle(case: Case, ragged: bool, platform: str, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(5)
    c = indices(case, generator)
    program = parse(source(case, c, ragged))
    x, y = operand(case, (ROWS, COLS), generator), operand(case, case.second, generator)
    out = case.out or case.dtype
    wanted = torch.full(case.shape, 7).to(TYPES[out])
    got = wanted.clone()
    space: dict[str, object] = {}
    exec(torch_codegen(program), space)  # the oracle is a script
    space["main"](x.clone(), y.clone(), c.clone(), wanted)  # type: ignore[operator]
    ir.compile(program, platform=platform, output_dir=str(tmp_path), skip_ptoas=True, dump_passes=False)
    result = run_artifact(tmp_path, [as_array(t) for t in (x, y, c, got)], DeviceSettings.strict())
    assert result.errors == ()
    bound = TOLERANCE.get(out, 0)
    torch.testing.assert_close(got.double(), wanted.double(), rtol=bound, atol=bound / 2, equal_nan=True)
