"""What is installed here and what it can do, for `python -m pytest_pypto info` and for bug reports."""

from __future__ import annotations

import platform
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable

from pytest_pypto.options import PLATFORMS
from pytest_pypto.toolchain import Toolchain, distribution_version

DISTRIBUTIONS = ("pytest", "pytest-xdist", "pytest-timeout", "torch", "numpy", "ml-dtypes", "filelock")


def describe(chosen: Toolchain) -> list[str]:
    """Lines about versions, the PyPTO in force, its platforms, passes and operators."""
    lines = [f"pytest-pypto {distribution_version('pytest-pypto')}", f"PyPTO: {chosen.describe()} at {chosen.location}"]
    lines.append(f"python {platform.python_version()} on {sys.platform}")
    lines += [f"{name} {distribution_version(name)}" for name in DISTRIBUTIONS]
    lines.append(f"platforms: {', '.join(PLATFORMS)}")
    lines += _passes()
    return lines + (_operators() if chosen.kind == "embedded" else [])


def _passes() -> list[str]:
    from pypto.ir.pass_manager import OptimizationStrategy, PassManager

    names = PassManager.get_strategy(OptimizationStrategy.Default).get_pass_names()
    return [f"passes ({len(names)}):", *_wrapped(names)]


def _operators() -> list[str]:
    from pytest_pypto.pypto.ir.op_table import all_ops

    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(all_ops()):
        groups[name.rpartition(".")[0] or name].append(name)
    lines = [f"operators ({sum(map(len, groups.values()))}):"]
    for group in sorted(groups):
        lines += _wrapped(groups[group])
    return lines


def _wrapped(words: Iterable[str]) -> list[str]:
    return textwrap.wrap(", ".join(words), 118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
