"""Random kernels: after each pass the kernel computes what the author wrote, and no live bytes are overwritten.

Run more of them with `PYPTO_RANDOM_KERNELS=500`.
"""

from __future__ import annotations

import os

import pytest
import torch

import pytest_pypto.pypto.language as pl
from pytest_pypto.harness.memory import check_program
from pytest_pypto.pypto.passes.context import MemoryPlanner

from .random_kernels import Kernel
from .whole import differences, execute, stages

COUNT = int(os.environ.get("PYPTO_RANDOM_KERNELS", "36"))
SPLITS = ("NONE", "UP_DOWN", "LEFT_RIGHT")
PLANNERS = (MemoryPlanner.PYPTO, MemoryPlanner.DSA_RP, MemoryPlanner.PTOAS)


@pytest.mark.parametrize("seed", range(COUNT))
def test_result_is_that_of_the_source(seed: int) -> None:
    split, planner = SPLITS[seed % 3], PLANNERS[seed // 3 % 3]
    platform = ("a2a3sim", "a5sim")[seed // 9 % 2]
    kernel = Kernel(seed, n=17 if split == "NONE" and seed % 2 else 32)
    text, inputs = kernel.text(split), kernel.inputs()
    want = {"o": execute(pl.parse(text), inputs)["o"]}
    assert torch.isfinite(want["o"]).all()
    found = stages(text, platform, planner)
    for stage, node in found.items():
        assert not differences(execute(node, inputs), want, 2e-3), f"after {stage} on {platform}\n{text}"
    last = list(found.values())[-1]
    if planner is not MemoryPlanner.PTOAS:
        assert not check_program(last, platform).findings, text
