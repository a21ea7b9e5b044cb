"""A plugin that repeats every run of the simulated device in twenty random orders and compares the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DfxSettings
from pytest_pypto.pypto.device import run as module
from pytest_pypto.pypto.device.orders import copies
from pytest_pypto.pypto.device.result import DeviceResult
from pytest_pypto.pypto.device.settings import DeviceSettings

ORDERS = 20
_original = module.run_artifact
_runs = 0


def _repeated(folder: Path, args: Sequence[Any], settings: DeviceSettings | None = None) -> DeviceResult:
    global _runs
    start = copies(args)
    wanted = _original(folder, args, settings)
    for seed in range(ORDERS):
        again = copies(start)
        other = replace(settings or DeviceSettings(), order="random", seed=seed, dfx=DfxSettings())
        found = _original(folder, again, other)
        assert [str(f) for f in found.errors] == [str(f) for f in wanted.errors], (folder, seed)
        for a, b in zip(args, again, strict=True):
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(
                    np.ascontiguousarray(b).view(np.uint8), np.ascontiguousarray(a).view(np.uint8), err_msg=str(seed)
                )
        _runs += 1
    return wanted


def pytest_configure() -> None:
    """Put the repeating run in place of the plain one."""
    module.run_artifact = _repeated


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many repeated runs agreed."""
    terminalreporter.write_line(f"repeated runs: {_runs}")
