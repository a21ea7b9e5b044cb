"""Whole programs through all passes: every stage is run and compared with expected tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import pytest_pypto.pypto.language as pl
from pytest_pypto.harness.memory import check_program
from pytest_pypto.pypto import ir
from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.debug.torch_codegen import torch_codegen
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.passes.context import MemoryPlanner, PassContext
from pytest_pypto.pypto.passes.manager import OptimizationStrategy, PassManager

from .support import PLATFORMS

SENTINEL = -7.0
SPLITS = {"NONE": "", "UP_DOWN": "pl.split(pl.SplitMode.UP_DOWN)", "LEFT_RIGHT": "pl.split(pl.SplitMode.LEFT_RIGHT)"}
HEAD = "import pypto.language as pl\n\n@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Opaque)\n"

Tensors = Mapping[str, torch.Tensor]


def out(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An output filled with the sentinel, so that cells nobody writes are seen."""
    return torch.full(shape, SENTINEL).to(dtype)


def randn(*shape: int, seed: int = 0, scale: float = 0.5) -> torch.Tensor:
    """The same random numbers each time."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale


def program(params: str, body: str, split: str = "NONE", plain: bool = False) -> str:
    """A program whose `main` runs `body` in one core group; `params` are `name: shape dtype [Out|InOut]` lines."""
    typed = [_param(line) for line in params.strip().split("\n")]
    names = [name for name, _, is_out in typed if is_out]
    types = [text for _, text, is_out in typed if is_out]
    signature = ", ".join(f"{name}: pl.{out_}[{text}]" if out_ else f"{name}: {text}" for name, text, out_ in typed)
    back = types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
    extra = f", optimizations=[{SPLITS[split]}]" if SPLITS[split] else ""
    scope = "" if plain else f"        with pl.at(level=pl.Level.CORE_GROUP{extra}):\n"
    pad = " " * (8 if plain else 12)
    lines = "\n".join(pad + line for line in body.strip("\n").split("\n"))
    return f"{HEAD}    def main(self, {signature}) -> {back}:\n{scope}{lines}\n        return {', '.join(names)}\n"


def _param(line: str) -> tuple[str, str, str]:
    name, _, rest = line.strip().partition(":")
    shape, dtype, *direction = rest.strip().rsplit("]", 1)[0] + "]", *rest.rsplit("]", 1)[1].split()
    return name, f"pl.Tensor[{shape}, pl.{dtype}]", direction[0] if direction else ""


def stages(source: str | Program, platform: str, planner: MemoryPlanner = MemoryPlanner.PYPTO) -> dict[str, Program]:
    """The program after every pass that changed it."""
    at = pl.parse(source) if isinstance(source, str) else source
    found = {"frontend": at}
    with selected_backend(PLATFORMS[platform]), PassContext(memory_planner=planner):
        for one in PassManager.get_strategy(OptimizationStrategy.Default).passes:
            after = one(at)
            if after is not at:
                found[one.name] = after
            at = after
    return found


def execute(node: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments after the oracle ran `main`."""
    space: dict[str, Any] = {}
    exec(compile(torch_codegen(node), "<oracle>", "exec"), space)
    values = {k: v.clone() if torch.is_tensor(v) else v for k, v in inputs.items()}
    space["main"](*values.values())
    return values


def differences(values: Mapping[str, Any], expected: Tensors, tolerance: float) -> list[str]:
    """One line for each tensor that is not as expected."""
    lines = []
    for name, want in expected.items():
        near = torch.isclose(values[name].float(), want.float(), rtol=tolerance, atol=tolerance, equal_nan=True)
        if not near.all():
            at = (~near).nonzero()[0].tolist()
            lines.append(f"{name}: {int((~near).sum())} cells differ, first at {at}")
    return lines


def check_stages(
    source: str,
    inputs: Mapping[str, Any],
    expected: Tensors,
    platform: str,
    tolerance: float = 1e-3,
    planner: MemoryPlanner = MemoryPlanner.PYPTO,
) -> dict[str, Program]:
    """Compile, run every stage, and look at the addresses; returns the stages."""
    found = stages(source, platform, planner)
    for name, node in found.items():
        wrong = differences(execute(node, inputs), expected, tolerance)
        assert not wrong, f"after {name} on {platform}: {wrong}\n{node}"
    if planner is not MemoryPlanner.PTOAS:
        last = list(found.values())[-1]
        assert not check_program(last, platform).findings
    return found


def check_device(
    source: str,
    inputs: Mapping[str, Any],
    expected: Tensors,
    platform: str,
    folder: Path,
    tolerance: float = 1e-3,
    planner: MemoryPlanner = MemoryPlanner.PYPTO,
) -> None:
    """Compile and run on the simulated device."""
    options: dict[str, Any] = {"skip_ptoas": True, "dump_passes": False, "memory_planner": planner}
    compiled = ir.compile(pl.parse(source), output_dir=str(folder), platform=platform, **options)
    values = {k: v.clone() if torch.is_tensor(v) else v for k, v in inputs.items()}
    compiled(*values.values())
    wrong = differences(values, expected, tolerance)
    assert not wrong, f"device {platform}: {wrong}"
