"""PyPTO's intermediate representation: the public names of `pypto.ir`, imported on first use."""

from __future__ import annotations

from typing import Any

from ..lazy import import_module
from .compile import compile as compile

_MODULES: dict[str, str] = {
    "dtypes": "DataType",
    "span": "Span",
    "enums": "MemorySpace Mem TensorLayout TileLayout PadValue CompactMode FunctionType Level Role SplitMode ForKind "
    "ScopeMode PipeType AtomicType CoreType ScopeKind ParamDirection ArgDirection InlineLanguage NotifyOp WaitCmp "
    "ReduceOp level_to_linqu_level is_incore_type",
    "types": "Type ScalarType ShapedType TensorType DistributedTensorType TileType ArrayType TupleType UnknownType "
    "PtrType MemRefType WindowBufferType CommCtxType PrefetchAsyncContextType AsyncEventType AsyncSessionType "
    "TensorView TileView DYNAMIC_DIM",
    "expr": "IRNode Op GlobalVar Expr Var IterArg MemRef WindowBuffer ConstInt ConstFloat ConstBool Call Submit "
    "MakeTuple TupleGetItemExpr BinaryExpr UnaryExpr Add Sub Mul FloorDiv FloorMod FloatDiv Min Max Pow Eq Ne Lt Le "
    "Gt Ge And Or Xor BitAnd BitOr BitXor BitShiftLeft BitShiftRight Abs Neg Not BitNot Cast",
    "stmt": "Stmt AssignStmt EvalStmt ReturnStmt YieldStmt SeqStmts IfStmt ForStmt WhileStmt BreakStmt ContinueStmt "
    "InlineStmt ScopeStmt InCoreScopeStmt ClusterScopeStmt HierarchyScopeStmt SpmdScopeStmt SplitAivScopeStmt "
    "RuntimeScopeStmt CommDomainScopeStmt",
    "program": "Function Program",
    "scalar_ops": "add sub mul truediv floordiv mod pow eq ne lt le gt ge neg cast bit_and bit_or bit_xor "
    "bit_shift_left bit_shift_right bit_not and_ or_ not_ min_ max_",
    "op_table": "get_op is_op_registered create_op_call set_call_attrs",
    "structural": "structural_equal structural_hash assert_structural_equal",
    "visitor": "IRVisitor IRMutator flatten_to_stmts collect_def_vars find_yield_stmt get_last_yield_stmt "
    "substitute_expr substitute_stmt deep_clone attach_leading_comments",
    "printer": "python_print python_print_type register_format_callback",
    "builder": "IRBuilder",
    "call_types": "deduce_call_return_type",
    "analysis": "ParentStmtAnalysis ArgEffect WriteChannel get_op_arg_effect get_op_memory_spec get_op_write_channel "
    "op_has_declared_arg_effect op_has_declared_arg_effects",
    "conversions": "ConversionContext op_conversion register_op_conversion register_op_conversion_custom "
    "has_op_conversion",
    "compiled_program": "CompiledProgram",
    "distributed_compiled_program": "DistributedCompiledProgram DistributedConfig",
    "pass_manager": "PassManager OptimizationStrategy PassDumpLevel",
    "instruments": "make_roundtrip_instrument PassContext VerificationLevel VerificationMode DiagnosticPhase "
    "DiagnosticCheck DiagnosticCheckSet",
    "directions": "input output inout output_existing no_dep scalar_dir make_call",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}
_MEMBERS: dict[str, str] = {
    "Level": "AIC AIV CHIP CHIP_DIE CLUSTER_0 CLUSTER_1 CLUSTER_2 CORE_GROUP GLOBAL HOST",
    "PipeType": "ALL FIX M MTE1 MTE2 MTE3 S V",
    "MemorySpace": "Acc Bias DDR Left LeftScale Mat Right RightScale ScalarLocal Vec",
    "DataType": "BF16 BOOL FP16 FP32 FP4 FP8E4M3FN FP8E5M2 FP8E8M0 HF4 HF8 INDEX INT16 INT32 INT4 INT64 INT8 UINT16 "
    "UINT32 UINT4 UINT64 UINT8",
    "CoreType": "CUBE VECTOR",
    "ScopeKind": "Cluster CommDomain Hierarchy Runtime SplitAiv",
    "TensorLayout": "DN MX_A_ZZ MX_B_NN ND NZ",
    "FunctionType": "Graph Group InCore Inline Opaque Orchestration Spmd",
    "ParamDirection": "In InOut Out",
    "SplitMode": "LEFT_RIGHT NONE UP_DOWN",
    "Role": "Orchestrator SubWorker",
    "ForKind": "Parallel Pipeline Sequential Unroll",
    "InlineLanguage": "Python",
    "TileLayout": "col_major none_box row_major",
    "PadValue": "max min null zero",
}
"""Enumeration members and dtypes that are also names of the module."""
_OWNER = {name: owner for owner, names in _MEMBERS.items() for name in names.split()}
_ABOVE = dict.fromkeys(
    ("serialize", "deserialize", "serialize_to_file", "deserialize_from_file"), "language.serialization"
)
"""Public names whose code lives in a room above this one."""
_SUBMODULES = ("op", "ops", "utils", "operators", "type")


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is not None:
        value = getattr(import_module(f"{__name__}.{module}"), name)
    elif name in _ABOVE:
        value = getattr(import_module(f"{__name__.rpartition('.')[0]}.{_ABOVE[name]}"), name)
    elif name in _OWNER:
        value = getattr(__getattr__(_OWNER[name]), name)
    elif name in _MODULES or name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module 'pypto.ir' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_ABOVE, *_OWNER})
