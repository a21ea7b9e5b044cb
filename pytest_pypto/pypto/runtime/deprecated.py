"""Dispatch from a directory as it used to be written; both functions warn and forward."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .config import RunConfig
from .distributed import DistributedCompiledProgram, DistributedConfig
from .options import DfxOptions

if TYPE_CHECKING:
    from ..ir.program import Program

_L2 = (
    "execute_compiled is deprecated; fold platform= and device_id= into the config and call "
    "CompiledProgram.from_dir(work_dir)(*args, config=config)"
)
_L3 = (
    "execute_distributed_compiled is deprecated; call "
    "DistributedCompiledProgram.from_dir(output_dir, platform=...)(*args, config=config)"
)


def execute_compiled(
    work_dir: str | os.PathLike[str],
    args: Sequence[Any],
    *,
    platform: str,
    device_id: int,
    dfx: DfxOptions = DfxOptions(),  # noqa: B008  a frozen value; the signature shows it
    level: int = 2,
    aicpu_thread_num: int | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    config: RunConfig | None = None,
) -> None:
    """Dispatch an artifact directory in place. Explicit arguments win; `config` gives only the ring sizes.

    Raises:
        ValueError: another level than 2, or a directory and arguments that `CompiledProgram` refuses.
    """
    warnings.warn(_L2, DeprecationWarning, stacklevel=2)
    if level != 2:
        raise ValueError(f"execute_compiled only supports level=2 (one chip), got {level!r}")
    _execute_compiled(work_dir, args, platform, device_id, dfx, aicpu_thread_num, config)


def _execute_compiled(
    work_dir: str | os.PathLike[str],
    args: Sequence[Any],
    platform: str,
    device_id: int,
    dfx: DfxOptions,
    aicpu_thread_num: int | None,
    config: RunConfig | None,
) -> Any:
    from .compiled import CompiledProgram

    rings = config if config is not None else RunConfig()
    merged = RunConfig(
        platform=platform,
        device_id=device_id,
        aicpu_thread_num=aicpu_thread_num if aicpu_thread_num is not None else rings.aicpu_thread_num,
        ring_task_window=rings.ring_task_window,
        ring_heap=rings.ring_heap,
        ring_dep_pool=rings.ring_dep_pool,
        enable_chip_swimlane=dfx.enable_chip_swimlane,
        enable_dump_args=dfx.enable_dump_args,
        enable_pmu=dfx.enable_pmu,
        enable_dep_gen=dfx.enable_dep_gen,
        enable_scope_stats=dfx.enable_scope_stats,
    )
    return CompiledProgram.from_dir(work_dir)(*args, config=merged)


def execute_distributed_compiled(
    output_dir: str | os.PathLike[str],
    args: Sequence[Any],
    config: RunConfig | None = None,
    *,
    platform: str | None = None,
    distributed_config: DistributedConfig | None = None,
) -> Any:
    """Dispatch a distributed artifact directory.

    Raises:
        FileNotFoundError, NotImplementedError: see `DistributedCompiledProgram.from_dir`.
    """
    warnings.warn(_L3, DeprecationWarning, stacklevel=2)
    return DistributedCompiledProgram.from_dir(output_dir, platform=platform, distributed_config=distributed_config)


def compile_and_run(program: Program, *tensors: Any, config: RunConfig | None = None) -> Any:
    """Compile with a config and, when tensors are given, dispatch once; returns the handle."""
    from .compile import compile_program

    chosen = config if config is not None else RunConfig()
    compiled = compile_program(program, **chosen.compile_kwargs())
    if tensors and not chosen.codegen_only:
        compiled(*tensors, config=chosen)
    return compiled
