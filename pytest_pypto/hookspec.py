"""Hooks that a `conftest.py` or another plugin may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import torch

    from pytest_pypto.check.compare import TensorDiff
    from pytest_pypto.harness.verdict import Verdict


@pytest.hookspec(firstresult=True)
def pytest_pypto_unavailable(config: pytest.Config, platform: str) -> str | None:
    """Say why a platform cannot run on this machine; its variants are then skipped with that reason."""


@pytest.hookspec(firstresult=True)
def pytest_pypto_tolerance(item: pytest.Item, output: str, dtype: str) -> tuple[float, float] | None:
    """Give (rtol, atol) of an output where neither argument, marker, command line, ini nor RunConfig does.

    Args:
        item: the test.
        output: name of the output.
        dtype: its torch type without `torch.`, e.g. "float32".
    """


@pytest.hookspec(firstresult=True)
def pytest_pypto_compare(
    item: pytest.Item, output: str, actual: torch.Tensor, expected: torch.Tensor
) -> TensorDiff | None:
    """Compare an output in another way than by tolerance (top-k ties, outlier ratio, valid rows only, ...)."""


@pytest.hookspec
def pytest_pypto_verdict(item: pytest.Item, verdict: Verdict) -> Any:
    """Called with the verdict of every check, before a failure is raised."""
