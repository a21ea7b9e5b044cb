"""The order of the passes.

A pass is listed when its module exists: passes that do nothing on one chip (distributed tensors, machine levels above
the core group) are left out instead of being listed as no-ops. So the numbers in dump file names follow what really
runs and may differ from the reference's; the names are the reference's. Match on the name.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from .base import Pass
from .context import MemoryPlanner

ORDER: tuple[tuple[str, str], ...] = (
    ("InlineFunctions", "inline_functions"),
    ("UnrollLoops", "unroll_loops"),
    ("CtrlFlowTransform", "ctrl_flow_transform"),
    ("ConvertToSSA", "convert_to_ssa"),
    ("Simplify", "simplify"),
    ("NormalizeStmtStructure", "normalize_stmt_structure"),
    ("FlattenCallExpr", "flatten_call_expr"),
    ("OutlineHierarchyScopes", "outline_hierarchy_scopes"),
    ("OutlineIncoreScopes", "outline_incore_scopes"),
    ("OutlineClusterScopes", "outline_cluster_scopes"),
    ("ConvertTensorToTileOps", "convert_tensor_to_tile_ops"),
    ("OptimizeOrchTensors", "optimize_orch_tensors"),
    ("LowerCompositeOps", "lower_composite_ops"),
    ("FlattenTileNdTo2D", "flatten_tile_nd_to_2d"),
    ("LegalizeTileCast", "legalize_tile_cast"),
    ("AutoTileMatmulL0", "auto_tile_matmul_l0"),
    ("CanonicalizeTileSlice", "canonicalize_tile_slice"),
    ("InferTileMemorySpace", "infer_tile_memory_space"),
    ("InsertMxScaleAddr", "insert_mx_scale_addr"),
    ("ResolveBackendOpLayouts", "resolve_backend_op_layouts"),
    ("LowerAutoVectorSplit", "lower_auto_vector_split"),
    ("ExpandMixedKernel", "expand_mixed_kernel"),
    ("InjectGMPipeBuffer", "inject_gm_pipe_buffer"),
    ("SplitVectorKernel", "split_vector_kernel"),
    ("StampTfreeSplit", "stamp_tfree_split"),
    ("NormalizeReturnOrder", "normalize_return_order"),
    ("SkewCrossCorePipeline", "skew_cross_core_pipeline"),
    ("LowerPipelineToSlots", "lower_pipeline_to_slots"),
    ("LowerPipelineLoops", "lower_pipeline_loops"),
    ("CanonicalizeIOOrder", "canonicalize_io_order"),
    ("MaterializeTensorStrides", "materialize_tensor_strides"),
    ("InitMemRef", "init_mem_ref"),
    ("MaterializeSemanticAliases", "materialize_semantic_aliases"),
    ("MemoryReuse", "memory_reuse"),
    ("AllocateMemoryAddr", "allocate_memory_addr"),
    ("FoldNoOpReshape", "fold_no_op_reshape"),
    ("FuseCreateAssembleToSlice", "fuse_create_assemble_to_slice"),
    ("DeriveCallDirections", "derive_call_directions"),
    ("AutoDeriveTaskDependencies", "auto_derive_task_dependencies"),
    ("ExpandManualPhaseFence", "expand_manual_phase_fence"),
    ("SynthesizeAllReduceSignals", "synthesize_allreduce_signals"),
    ("MaterializeCommDomainScopes", "materialize_comm_domain_scopes"),
    ("LowerHostTensorCollectives", "lower_host_tensor_collectives"),
    ("MaterializeDistTensorCtx", "materialize_dist_tensor_ctx"),
    ("Simplify", "simplify"),
    ("MaterializeRuntimeScopes", "materialize_runtime_scopes"),
    ("ClassifyIterArgCarry", "classify_iter_arg_carry"),
    ("InsertCommFence", "insert_comm_fence"),
    ("MaterializeValidShapeSymbols", "materialize_valid_shape_symbols"),
)
"""(name, module) of every pass of the reference, in its order."""

SKIPPED: dict[MemoryPlanner, frozenset[str]] = {
    MemoryPlanner.PYPTO: frozenset({"LowerPipelineToSlots"}),
    MemoryPlanner.DSA_RP: frozenset({"LowerPipelineToSlots", "MemoryReuse"}),
    MemoryPlanner.PTOAS: frozenset({"MemoryReuse", "AllocateMemoryAddr"}),
}
"""Passes that a planner has no work for."""


@cache
def load_pass(name: str, module: str) -> type[Pass] | None:
    """The class of a pass, or None when this implementation has no such pass."""
    where = f"{__package__}.{module}"
    if find_spec(where) is None:
        return None
    found: type[Pass] = getattr(import_module(where), name)
    return found


def default_passes(planner: MemoryPlanner, analyze_auto_scopes_for_deps: bool = False) -> list[Pass]:
    """The passes of the default strategy for a planner, in order."""
    skip = set(SKIPPED[planner])
    if not analyze_auto_scopes_for_deps:
        skip.add("AutoDeriveTaskDependencies")
    classes = [load_pass(name, module) for name, module in ORDER if name not in skip]
    return [cls() for cls in classes if cls is not None]
