"""From checked arguments to a run on the simulated device."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .device_tensor import DeviceTensor, StackedDeviceTensor
from .options import DfxOptions, RunOptions
from .rings import RULES, effective_ring
from .torch_bridge import as_array, as_tensor

if TYPE_CHECKING:
    from ..device import DeviceResult, DeviceSettings

DFX_DIRECTORY = "dfx_outputs"
SANITIZE_VARIABLE = "PYPTO_SANITIZE"
_overrides: ContextVar[dict[str, Any] | None] = ContextVar("pypto_device_settings", default=None)


@contextmanager
def device_settings(**changes: Any) -> Iterator[None]:
    """Change settings of the simulated device for the dispatches inside (fields of `pypto.device.DeviceSettings`).

        with device_settings(order="random", seed=7, sanitize={"race"}):
            compiled(a, b, out)

    Raises:
        TypeError, ValueError: an unknown field or value; raised by the dispatch.
    """
    token = _overrides.set({**(_overrides.get() or {}), **changes})
    try:
        yield
    finally:
        _overrides.reset(token)


def sanitizers_wanted() -> bool:
    """Whether `PYPTO_SANITIZE` asks for the sanitizers."""
    return os.environ.get(SANITIZE_VARIABLE, "").strip().lower() in ("1", "true", "yes", "on", "all")


def settings_for(options: RunOptions, artifact: Path, base: DeviceSettings | None = None) -> DeviceSettings:
    """Device settings of one dispatch: rings and DFX from the options, sanitizers from the environment or `base`."""
    from ..device import DeviceSettings, DfxSettings

    start = base if base is not None else DeviceSettings.strict() if sanitizers_wanted() else DeviceSettings()
    rings: dict[str, Any] = {
        rule.field: effective_ring(rule, getattr(options, rule.field), getattr(DeviceSettings(), rule.field))
        for rule in RULES
    }
    dfx = options.dfx
    files = DfxSettings(
        directory=artifact / DFX_DIRECTORY if dfx.any() else None,
        chip_swimlane=dfx.enable_chip_swimlane,
        dump_args=int(dfx.enable_dump_args),
        pmu=int(dfx.enable_pmu),
        dep_gen=bool(dfx.enable_dep_gen),
        scope_stats=bool(dfx.enable_scope_stats),
    )
    made: DeviceSettings = replace(start, platform=options.platform, dfx=files, **rings)
    changes = _overrides.get()
    return replace(made, **changes) if changes else made


def dispatch(artifact: Path, values: Sequence[Any], settings: DeviceSettings) -> tuple[Any, DeviceResult]:
    """Run an artifact on checked arguments; tensors are changed in place.

    Returns:
        What the program returns when some of it is no parameter (a tensor or a number, a tuple of them in order),
        else None; and the device's own report.

    Raises:
        DeviceError: a damaged artifact, an unsupported construct, or a fault that stops the run.
    """
    from ..device import run_artifact

    arrays = [_array(v) for v in values]
    result = run_artifact(artifact, arrays, settings)
    return _returned(result.returned, arrays, values), result


def stopped(result: DeviceResult) -> Exception:
    """The error of a run that a finding ended; it carries all findings of the run."""
    from ..device import DeviceError

    last = (result.errors or result.findings)[-1:]
    text = "".join(f"{f.kind}: {f.message} ({f.site})" for f in last) or "the run did not finish"
    return DeviceError(text, findings=result.findings)


def _array(value: Any) -> np.ndarray[Any, Any] | int | float | bool:
    if isinstance(value, torch.Tensor):
        return as_array(value)
    if isinstance(value, DeviceTensor):
        if value.buffer is None:
            raise TypeError("a raw-pointer DeviceTensor cannot be dispatched; allocate it with ChipWorker.alloc_tensor")
        return as_array(value.buffer.tensor())
    if isinstance(value, StackedDeviceTensor):
        raise TypeError("a StackedDeviceTensor spans several chips; pass one shard, x[i], to a single-chip program")
    number: int | float | bool = value
    return number


def _returned(returned: Any, arrays: Sequence[Any], values: Sequence[Any]) -> Any:
    """The program's return value, with parameters as the caller's tensors; None when it is parameters only."""
    if returned is None:
        return None
    several = isinstance(returned, (list, tuple))
    made, fresh = [], False
    for item in returned if several else (returned,):
        place = next((i for i, a in enumerate(arrays) if a is item), None)
        if place is None and isinstance(item, np.ndarray):
            place = next((i for i, a in enumerate(arrays) if _same_memory(a, item)), None)
        fresh = fresh or place is None
        made.append(_torch_value(item) if place is None else values[place])
    if not fresh:
        return None
    return tuple(made) if several and len(made) > 1 else made[0]


def _same_memory(a: Any, b: np.ndarray[Any, Any]) -> bool:
    return (
        isinstance(a, np.ndarray)
        and a.shape == b.shape
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


def _torch_value(item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return as_tensor(item)
    return item.item() if isinstance(item, np.generic) else item


def dfx_hint(options: DfxOptions, artifact: Path) -> str:
    """One line that says where diagnostics of a dispatch went."""
    return f"DFX files: {artifact / DFX_DIRECTORY}" if options.any() else ""
