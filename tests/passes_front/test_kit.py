"""Each pass by itself against the reference: from the dump before it to the dump after it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.ir.structural import structural_equal
from pytest_pypto.pypto.language.parser import loads
from pytest_pypto.pypto.passes.context import PassContext
from tests.kit import KIT, needs_kit
from tests.passes_back.support import PLATFORMS, dump_of, planner_of, run_pass

pytestmark = needs_kit
PASSES = (
    *("InlineFunctions", "UnrollLoops", "CtrlFlowTransform", "ConvertToSSA", "Simplify", "NormalizeStmtStructure"),
    *("FlattenCallExpr", "OutlineHierarchyScopes", "OutlineIncoreScopes", "OutlineClusterScopes"),
    *("ConvertTensorToTileOps", "OptimizeOrchTensors", "LowerCompositeOps", "FlattenTileNdTo2D", "LegalizeTileCast"),
    *("AutoTileMatmulL0", "CanonicalizeTileSlice", "InferTileMemorySpace", "ResolveBackendOpLayouts"),
    *("MaterializeTensorStrides", "FoldNoOpReshape", "FuseCreateAssembleToSlice", "DeriveCallDirections"),
    *("AutoDeriveTaskDependencies", "ExpandManualPhaseFence", "MaterializeRuntimeScopes", "ClassifyIterArgCarry"),
    "MaterializeValidShapeSymbols",
)
UNREADABLE = {"whiles": "names that nothing defines", "dist": "distributed tensors"}
DIFFERENT = {
    ("brk", "CtrlFlowTransform"): "the reference hands nothing on where a break leaves a loop without carries",
    ("brk_only", "CtrlFlowTransform"): "the same",
    ("neg_idx", "Simplify"): "the reference takes a named scalar for non-negative",
    ("valid_len", "OptimizeOrchTensors"): "the reference loses the valid shape of a window",
    ("valid_len", "FlattenTileNdTo2D"): "the reference loses the valid shape of a tile",
    ("attn", "ResolveBackendOpLayouts"): "the reference loses the results of a loop",
}
ONLY = {"AutoDeriveTaskDependencies": "auto_edges"}
"""A pass that ran for one program of the kit."""
CASES = sorted(p.parent for p in KIT.glob("*/*/passes") if p.parents[1].name not in UNREADABLE)


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_passes_match_the_reference(case: Path) -> None:
    program, platform = case.parent.name, case.name
    index = json.loads((case / "passes" / "index.json").read_text())
    names = [name.partition("_after_")[2] for name in index["passes"]]
    with selected_backend(PLATFORMS[platform]), PassContext(memory_planner=planner_of(KIT, program)):
        load = cache(loads)
        for number, name in enumerate(names):
            if name not in PASSES or (program, name) in DIFFERENT or ONLY.get(name, program) != program:
                continue
            before, after = (dump_of(case / "passes", n) for n in (number - 1, number))
            if program == "attn" and names.index(name) > names.index("ResolveBackendOpLayouts"):
                break  # later dumps have names that nothing defines
            made = run_pass(name, load(before))
            assert structural_equal(made, load(after)), f"{name}\n{made}"
