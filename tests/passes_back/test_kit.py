"""Each pass by itself against the reference: from the dump before it to the dump after it, addresses included."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.language.parser import loads
from pytest_pypto.pypto.passes.context import PassContext
from tests.kit import KIT, needs_kit
from tests.passes_back.support import PLATFORMS, neutral, planner_of, run_pass, stages

pytestmark = needs_kit
UNREADABLE = {"whiles": "the reference's dumps use names that nothing defines", "dist": "distributed tensors"}
DIFFERENT = {
    ("attn", "a2a3sim", "SplitVectorKernel"): "the reference types tiles of the idle lane [16, 16] for [16, 1]",
    ("attn", "a2a3sim", "MaterializeSemanticAliases"): "from those types: it retargets 1024 bytes into 64",
}
CASES = sorted(p.parent for p in KIT.glob("*/*/passes") if p.parents[1].name not in UNREADABLE)


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_passes_match_the_reference(case: Path) -> None:
    program, platform = case.parent.name, case.name
    with selected_backend(PLATFORMS[platform]), PassContext(memory_planner=planner_of(KIT, program)):
        load = cache(loads)
        for name, before, after in stages(case / "passes"):
            if (program, platform, name) in DIFFERENT:
                continue
            made = run_pass(name, load(before))
            assert neutral(made) == neutral(load(after)), name
