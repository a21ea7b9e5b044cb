"""Configuration, dispatch, workers and tools of compiled programs; names are imported on first use."""

from __future__ import annotations

from typing import Any

from ..lazy import import_module

_MODULES: dict[str, str] = {
    "config": "RunConfig",
    "options": "CompileOptions DfxOptions",
    "platforms": "ExecutionMode",
    "specs": "RunResult ScalarSpec TensorSpec",
    "device_tensor": "DeviceTensor StackedDeviceTensor",
    "worker": "Worker ChipWorker RegistrationHandle",
    "distributed": "DistributedWorker DistributedRunHandle",
    "benchmarking": "benchmark",
    "bench_stats": "BenchmarkStats TraceInvocation TraceSpan",
    "deprecated": "execute_compiled execute_distributed_compiled",
    "logs": "configure_log log_level",
    "dispatch": "device_settings",
    "hardware": "ensure_pto_isa_root pto_isa_include_dir",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'pypto.runtime' has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
