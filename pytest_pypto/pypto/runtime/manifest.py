"""`kernel_config.py` read as data: three assignments of literals. Nothing in an artifact is ever executed."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from ..codegen.metadata import CONFIG_NAME, META_NAME

DEFAULT_RUNTIME = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}
_TABLES = ("RUNTIME_CONFIG", "ORCHESTRATION", "KERNELS")
_MAX_BYTES = 4 << 20


def read_manifest(directory: Path) -> dict[str, Any] | None:
    """The tables of `kernel_config.py`, or None when the artifact has none.

    Raises:
        ValueError: the file is no list of literal assignments.
    """
    path = directory / CONFIG_NAME
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"larger than {_MAX_BYTES} bytes")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = {name: value for name, value in map(_assignment, tree.body) if name}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise ValueError(
            f"{path} is damaged ({problem}); it holds only literal assignments to {', '.join(_TABLES)}. "
            "Recompile via ir.compile()"
        ) from None
    return {name: found[name] for name in _TABLES if name in found}


def _assignment(node: ast.stmt) -> tuple[str, Any]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return "", None
    simple = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    if not simple:
        raise ValueError(f"line {node.lineno} is not an assignment of a literal")
    assert isinstance(node, ast.Assign)
    assert isinstance(node.targets[0], ast.Name)
    try:
        return node.targets[0].id, ast.literal_eval(node.value)
    except ValueError:
        raise ValueError(f"line {node.lineno} assigns something that is no literal") from None


def runtime_config(directory: Path) -> dict[str, Any]:
    """Runtime settings of an artifact; the defaults when it stores none."""
    manifest = read_manifest(directory)
    stored = manifest.get("RUNTIME_CONFIG") if manifest is not None else None
    return {**DEFAULT_RUNTIME, **stored} if isinstance(stored, dict) else dict(DEFAULT_RUNTIME)


def check_artifact(directory: Path) -> None:
    """Check that a directory holds what a dispatch needs: a host program and its kernels.

    Raises:
        FileNotFoundError: something is missing; the text says what.
        DeviceError: damaged metadata.
    """
    from ..device.artifact import missing_files

    host = sorted(directory.glob("orchestration/*.py"))
    dumps = sorted(directory.glob("passes_dump/[0-9][0-9]_*.py"))
    if not host and not dumps:
        what = "a finished artifact" if (directory / META_NAME).is_file() else "a single-chip artifact"
        raise FileNotFoundError(
            f"Cannot execute PyPTO artifact '{directory}': it is not {what} (no orchestration/<entry>.py and no "
            "passes_dump/); pass the output_dir of a compiled program, or compile again"
        )
    missing = missing_files(directory)
    if missing:
        raise FileNotFoundError(
            f"Cannot execute PyPTO artifact '{directory}': it is incomplete, missing: {', '.join(missing)}; "
            "recompile via ir.compile(), or put the files back"
        )
