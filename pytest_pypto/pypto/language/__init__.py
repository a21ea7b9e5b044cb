"""The PyPTO language, conventionally imported as `pl`. Every name is imported on first use."""

from __future__ import annotations

from typing import Any

from ..lazy import import_module

_MODULES: dict[str, str] = {
    "parser.decorators": "function program inline",
    "parser.values": "InlineFunction",
    "parser.modules": "parse loads parse_program loads_program",
    "typing": "Tensor Tile Scalar Array Tuple DynVar InOut IntLike Out RUNTIME dynamic TaskId PrefetchAsyncContext "
    "AsyncEvent AsyncSession",
    "dsl_api": "const range parallel unroll pipeline while_ yield_ cond static_print static_assert func_attr at "
    "cluster spmd split_aiv submit spmd_submit scope manual_scope no_dep dump_tag",
    "optimizations": "split cross_core_slot",
    "memref": "MemRef",
    "..ir.enums": "ScopeMode FunctionType ForKind AtomicType Level Role SplitMode Mem MemorySpace PipeType "
    "TensorLayout TileLayout PadValue CompactMode",
    "..ir.types": "MemRefType PtrType TensorView TileView",
    "..ir.dtypes": "DataType",
    "..jit": "jit JITFunction",
}
_SUBMODULES: dict[str, str] = {
    "parser": "parser",
    "typing": "typing",
    "op": "op",
    "dsl_api": "dsl_api",
    "distributed": "distributed",
    "optimizations": "optimizations",
    "arg_direction": "arg_direction",
    "adir": "arg_direction",
    "tensor": "op.tensor_ops",
    "tile": "op.tile_ops",
    "system": "op.system_ops",
    "array": "op.array_ops",
    "prefetch": "op.prefetch_ops",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}
_LAYOUTS = ("ND", "DN", "NZ", "MX_A_ZZ", "MX_B_NN")
_DTYPES = (
    *("FP4", "FP8E4M3FN", "FP8E5M2", "FP8E8M0", "FP16", "FP32", "BF16", "HF4", "HF8"),
    *("INT4", "INT8", "INT16", "INT32", "INT64", "UINT4", "UINT8", "UINT16", "UINT32", "UINT64"),
    *("BOOL", "INDEX", "TASK_ID"),
)
AUTO = -1
"""Buffer base that the compiler chooses."""


def _module(name: str) -> Any:
    relative = name if name.startswith("..") else f".{name}"
    return import_module(relative, __name__)


def _find(name: str) -> Any:
    if name in _HOME:
        return getattr(_module(_HOME[name]), name)
    if name in _SUBMODULES:
        return _module(_SUBMODULES[name])
    if name in _DTYPES:
        return getattr(_module("..ir.dtypes").DataType, name)
    if name in _LAYOUTS:
        return getattr(_module("..ir.enums").TensorLayout, name)
    if name == "Ptr":
        return _module("..ir.types").PtrType
    if name.startswith("_"):
        raise AttributeError(f"module 'pypto.language' has no attribute {name!r}")
    try:
        return getattr(_module("op.unified_ops"), name)
    except AttributeError:
        raise AttributeError(f"module 'pypto.language' has no attribute {name!r}") from None


def __getattr__(name: str) -> Any:
    value = _find(name)
    globals()[name] = value
    return value


def _public() -> list[str]:
    operators = [n for n in _module("op.unified_ops").__all__ if n not in _HOME]
    return sorted({*_HOME, *_SUBMODULES, *_LAYOUTS, *_DTYPES, *operators, "AUTO", "Ptr"})


def __dir__() -> list[str]:
    return sorted({*globals(), *_public()})
