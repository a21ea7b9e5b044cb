"""One command that repeats a test as it ran."""

from __future__ import annotations

import os
import shlex

import pytest

from pytest_pypto.options import Settings

LEFT_OUT = ("--pypto-platform=", "--pypto-known=", "--pypto-known-update=")
"""Flags that are not repeated: one platform is chosen, and a known failure is to be seen."""


def repeat_command(item: pytest.Item, settings: Settings, platform: str) -> str:
    """`python -m pytest ...` for one test, from the directory this session was started in.

    Args:
        item: the test.
        settings: of the session; what the command line gave is repeated.
        platform: the platform of this variant; the only one that is selected.
    """
    config = item.config
    start = config.invocation_params.dir
    inside = item.nodeid.partition("::")[2]
    words = ["python", "-m", "pytest", f"{os.path.relpath(item.path, start)}::{inside}", f"--pypto-platform={platform}"]
    words += [flag for flag in settings.flags() if not flag.startswith(LEFT_OUT)]
    if config.inipath is not None and start not in (config.rootpath, config.inipath.parent):
        words += ["-c", str(config.inipath), f"--rootdir={config.rootpath}"]
    return " ".join(shlex.quote(word) for word in words)
