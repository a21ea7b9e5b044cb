"""The artifact directory: kernels, host program, tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..backend import BackendType
from ..backend.handler import Handler, handler_for
from ..ir.enums import FunctionType
from ..ir.param_info import param_infos
from ..ir.program import Function, Program
from ..passes.profiling import profile_stage
from .cpp.orchestration import orchestration_text
from .errors import CodegenError, PartialCodegenError
from .host import host_text
from .metadata import CONFIG_NAME, META_NAME, kernel_config, kernel_config_text, meta_text
from .options import CodegenOptions
from .pto.function import module_text
from .refusals import refuse_distributed
from .units import Unit, entry_function, kernel_units, orchestrations, reachable

PLATFORMS: dict[str, BackendType] = {
    "a2a3": BackendType.Ascend910B,
    "a2a3sim": BackendType.Ascend910B,
    "a5": BackendType.Ascend950,
    "a5sim": BackendType.Ascend950,
}
"""Platform name -> architecture that kernels are generated for."""


def architecture_of(platform: str) -> BackendType:
    """The architecture of a platform.

    Raises:
        ValueError: unknown platform.
    """
    found = PLATFORMS.get(platform) if isinstance(platform, str) else None
    if found is None:
        raise ValueError(f"Invalid platform {platform!r}. Expected 'a2a3', 'a2a3sim', 'a5', 'a5sim'.")
    return found


def write_artifact(
    program: Program,
    out_dir: Path,
    *,
    platform: str,
    options: CodegenOptions | None = None,
    source: Program | None = None,
) -> None:
    """Write kernels, host program and tables of a finished program below `out_dir`.

    Args:
        program: the program after all passes.
        out_dir: the artifact directory; made when missing, never cleared.
        platform: `a2a3sim`, `a5sim`, `a2a3` or `a5`.
        options: see `CodegenOptions`.
        source: the program as it was before the passes; parameter directions of the sidecar come from it.

    Raises:
        ValueError: unknown platform.
        CodegenError: no entry, or a distributed program.
        PartialCodegenError: some kernels cannot be written; the others are on disk and in `.files`.
    """
    files = artifact_files(program, platform=platform, options=options, source=source)
    write_files(out_dir, files)


def artifact_files(
    program: Program,
    *,
    platform: str,
    options: CodegenOptions | None = None,
    source: Program | None = None,
) -> dict[str, str]:
    """The files of an artifact by path relative to its directory; see `write_artifact`.

    A program with several orchestration functions becomes one complete sub-build per function in `next_levels/`.
    """
    handler = handler_for(architecture_of(platform))
    chosen = options or CodegenOptions()
    refuse_distributed(program)
    several = orchestrations(program)
    if len(several) < 2:
        return _single(program, entry_function(program), handler, platform, chosen, source)
    files: dict[str, str] = {}
    for entry in several:
        part = Program(list(reachable(program, entry)), program.name, program.span)
        for path, text in _single(part, entry, handler, platform, chosen, source).items():
            files[f"next_levels/{entry.name}/{path}"] = text
    return files


def _single(
    program: Program, entry: Function, handler: Handler, platform: str, options: CodegenOptions, source: Program | None
) -> dict[str, str]:
    files: dict[str, str] = {}
    sources: dict[str, str] = {}
    failures: list[CodegenError] = []
    for unit in kernel_units(program):
        with profile_stage(f"kernel_codegen:{unit.name}"), profile_stage("ir_to_mlir"):
            try:
                text = module_text(unit.functions, handler, options)
            except CodegenError as problem:
                failures.append(problem)
                continue
        files |= {f"kernels/{unit.path}": text, f"ptoas/{unit.name}.pto": text}
        sources |= {f.name: f"kernels/{unit.path}" for f in unit.functions}
    with profile_stage("orchestration_codegen"):
        files[f"orchestration/{entry.name}.py"] = host_text(program, entry)
        files[f"orchestration/{entry.name}.cpp"] = orchestration_text(program, entry, handler)
    if failures:
        _raise(failures, files, program)
    if not options.compile_only:
        files[CONFIG_NAME] = kernel_config_text(kernel_config(program, entry, sources, options.runtime))
    executed = [f for f in files if f.startswith("kernels/") or f == f"orchestration/{entry.name}.py"]
    files[META_NAME] = _meta(entry, handler, platform, source, executed)
    return files


def _raise(failures: list[CodegenError], files: Mapping[str, str], program: Program) -> None:
    if len(failures) == 1 and not any(f.startswith("kernels/") for f in files):
        raise failures[0]
    table = "\n".join(f"  {problem}" for problem in failures)
    raise PartialCodegenError(
        f"{len(failures)} of the kernels of '{program.name}' cannot be written as .pto:\n{table}", files
    )


def _meta(entry: Function, handler: Handler, platform: str, source: Program | None, executed: list[str]) -> str:
    declared = signature_of(entry, source)
    return meta_text(param_infos(declared), len(declared.return_types), platform, handler.backend_type.name, executed)


def signature_of(entry: Function, source: Program | None) -> Function:
    """The author's declaration of the entry when it has the same parameters, else the lowered function."""
    author = source.get_function(entry.name) if source is not None else None
    if author is not None and len(author.params) == len(entry.params):
        return author
    return entry


def write_files(out_dir: Path, files: Mapping[str, str]) -> None:
    """Write texts below `out_dir`, each file in one step: a reader sees the old file or the new one, never half."""
    for path in sorted(files):
        target = out_dir / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, files[path])


def write_text(target: Path, text: str) -> None:
    """Replace one file in one step. Bytes of file names that are no UTF-8 are written as `\\udc..`."""
    with _beside(target) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        os.replace(temporary, target)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    temporary = target.with_name(f"{target.stem}.{os.getpid()}.tmp")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def describe_units(program: Program) -> list[Unit]:
    """The units `write_artifact` writes, without writing them."""
    return kernel_units(program)


def is_multi_orchestration(program: Program) -> bool:
    """True when the artifact has one sub-build per orchestration function."""
    return sum(f.func_type is FunctionType.Orchestration for f in program.functions.values()) > 1
