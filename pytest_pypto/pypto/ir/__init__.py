"""PyPTO's intermediate representation: the public names of `pypto.ir`, imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

from .compile import compile

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
    "compiled_program": "CompiledProgram",
    "distributed_compiled_program": "DistributedCompiledProgram DistributedConfig",
    "pass_manager": "PassManager OptimizationStrategy PassDumpLevel",
    "instruments": "make_roundtrip_instrument PassContext VerificationLevel VerificationMode DiagnosticPhase "
    "DiagnosticCheck DiagnosticCheckSet",
    "directions": "input output inout output_existing no_dep scalar_dir make_call",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'pypto.ir' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
