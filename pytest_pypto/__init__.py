"""pytest-pypto: test PyPTO kernels with pytest.

The names below are imported on first use; importing the package itself loads neither torch nor numpy nor PyPTO.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_pypto.check.compare import TensorDiff, compare
    from pytest_pypto.check.tolerance import Tolerance
    from pytest_pypto.harness.direction import Direction
    from pytest_pypto.harness.errors import CannotRun, CaseError, CheckFailed
    from pytest_pypto.harness.golden import Golden, compute_golden
    from pytest_pypto.harness.inputs import Inputs, make_inputs
    from pytest_pypto.harness.run import (
        assert_device,
        assert_memory,
        assert_oracle,
        assert_passes,
        assert_roundtrip,
        check,
    )
    from pytest_pypto.harness.split import with_split
    from pytest_pypto.harness.verdict import Finding, LayerResult, Verdict

__all__ = [
    "CannotRun",
    "CaseError",
    "CheckFailed",
    "Direction",
    "Finding",
    "Golden",
    "Inputs",
    "LayerResult",
    "TensorDiff",
    "Tolerance",
    "Verdict",
    "assert_device",
    "assert_memory",
    "assert_oracle",
    "assert_passes",
    "assert_roundtrip",
    "check",
    "compare",
    "compute_golden",
    "make_inputs",
    "with_split",
]

_HOME = {
    "check.compare": ("TensorDiff", "compare"),
    "check.tolerance": ("Tolerance",),
    "harness.direction": ("Direction",),
    "harness.errors": ("CannotRun", "CaseError", "CheckFailed"),
    "harness.golden": ("Golden", "compute_golden"),
    "harness.inputs": ("Inputs", "make_inputs"),
    "harness.run": ("assert_device", "assert_memory", "assert_oracle", "assert_passes", "assert_roundtrip"),
    "harness.split": ("with_split",),
    "harness.verdict": ("Finding", "LayerResult", "Verdict"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "check":  # a package that can be called, see there
        return importlib.import_module("pytest_pypto.check")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'pytest_pypto' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"pytest_pypto.{module}"), name)
    except AttributeError as exc:  # of a library that is too old; left alone it would read as "no such name"
        raise ImportError(f"pytest_pypto.{module} cannot be imported: {exc}") from exc


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
