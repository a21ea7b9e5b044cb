"""Run a build directory again, for instance after editing its `.pto` files.

python -m pypto.runtime.debug.replay WORK_DIR [options]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..config import RunConfig
from ..logs import configure_log

Inputs = Callable[[], Sequence[Any]]


def replay(
    work_dir: str | Path,
    *tensors: Any,
    config: RunConfig | None = None,
    recompile: bool = True,
    rebuild_from_pto: bool = True,
    validate: bool = False,
) -> Any:
    """Dispatch a build directory on the given arguments.

    The simulator reads the `.pto` text at every dispatch, so an edited file counts at once; `recompile` drops what
    the process remembers of the directory, and `rebuild_from_pto` has nothing to rebuild.

    Args:
        validate: compare with the `golden.py` of the directory; without arguments its inputs are used.

    Raises:
        FileNotFoundError: no build there, or no `golden.py` to validate with.
        ValueError: the wrong number of tensors. AssertionError: the results differ.
    """
    from ..compiled import CompiledProgram
    from ..golden import load_golden, output_names, run_golden, validate_golden

    directory = _build(Path(work_dir))
    if recompile:
        invalidate_binary_cache(directory)
    compiled = CompiledProgram.from_dir(directory)
    _say("[execute] running on device...")
    if not validate:
        return compiled(*tensors, config=config)
    golden = load_golden(directory)
    if not tensors:
        return run_golden(directory, lambda *args: compiled(*args, config=config))
    names = [name for name, _ in golden.generate_inputs({})]
    if len(tensors) != len(names):
        raise ValueError(f"{directory}/golden.py describes {names}: expected {len(names)} tensors, got {len(tensors)}")
    given = dict(zip(names, tensors, strict=True))
    expected = {k: v.clone() if hasattr(v, "clone") else v for k, v in given.items()}
    golden.compute_golden(expected, {})
    result = compiled(*tensors, config=config)
    wanted = {name: expected[name] for name in output_names(golden, names)}
    validate_golden(given, wanted, getattr(golden, "RTOL", 1e-5), getattr(golden, "ATOL", 1e-5))
    return result


def _build(directory: Path) -> Path:
    if (directory / "orchestration" / "host_orch.py").is_file() and not (directory / "kernel_config.py").is_file():
        from ..distributed import refuse

        refuse(f"the distributed build {directory}")
    if not any(directory.glob("orchestration/*")) and not (directory / "kernel_config.py").is_file():
        raise FileNotFoundError(
            f"{directory} is no build directory: missing kernel_config.py and orchestration/host_orch.py, and no "
            "host program below orchestration/; pass the output_dir of a compiled program"
        )
    return directory


def invalidate_binary_cache(directory: str | Path) -> None:
    """Forget what this process remembers of a build directory."""
    from ...device import clear_cache

    clear_cache()


def rebuild_kernel_cpp_from_pto(directory: str | Path) -> None:
    """Refresh the C++ of kernels from edited `.pto` text; artifacts of the embedded compiler have no such C++.

    Raises:
        RuntimeError: the directory has kernel C++, which only the vendor's assembler can refresh.
    """
    if any(Path(directory).glob("kernels/**/*.cpp")):
        raise RuntimeError(
            f"{directory} holds kernel C++ of the vendor's assembler, which the embedded toolchain does not have; "
            "rebuild with an installed PyPTO, or dispatch the .pto text"
        )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _parser(default_platform: str, with_dir: bool, validate: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pypto.runtime.debug.replay", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    if with_dir:
        parser.add_argument("work_dir", type=Path, help="the build directory")
    parser.add_argument("--platform", default=default_platform)
    parser.add_argument("--device-id", type=int, default=0)
    parser.add_argument("--pmu", type=int, default=0, metavar="EVENT", help="event of the unit counters")
    parser.add_argument("--swimlane", action="store_true", help="record task times at the highest level")
    parser.add_argument("--swimlane-level", type=int, default=None, choices=range(5), metavar="0..4")
    parser.add_argument("--dump-args", nargs="?", const=1, default=0, type=int, metavar="LEVEL")
    parser.add_argument("--dep-gen", action="store_true", help="record the task graph")
    parser.add_argument("--scope-stats", action="store_true", help="record ring use")
    parser.add_argument("--no-recompile", action="store_true", help="keep what the process remembers of the build")
    parser.add_argument("--no-rebuild-from-pto", action="store_true", help="do not refresh kernel C++")
    parser.add_argument("--log-level", default=None, help="level of the runtime's log")
    parser.add_argument("--log-sync-pypto", action="store_true", help="the same level for the compiler's log")
    parser.add_argument("--validate", action=argparse.BooleanOptionalAction, default=validate)
    return parser


def _config(args: argparse.Namespace) -> RunConfig:
    level = args.swimlane_level if args.swimlane_level is not None else 4 if args.swimlane else 0
    return RunConfig(
        platform=args.platform,
        device_id=args.device_id,
        enable_chip_swimlane=level,
        enable_dump_args=args.dump_args,
        enable_pmu=args.pmu,
        enable_dep_gen=args.dep_gen,
        enable_scope_stats=args.scope_stats,
    )


def main(
    argv: Sequence[str] | None = None,
    *,
    default_dir: Path | None = None,
    default_platform: str = "a2a3sim",
    inputs: Inputs | None = None,
    compare: Callable[..., Any] | None = None,
) -> int:
    """Entry of the command line and of `debug/run.py`; returns the exit code.

    Args:
        default_dir: the build, when the caller belongs to one.
        inputs: makes the arguments when there is no `golden.py`.
        compare: called with the arguments after the run.
    """
    args = _parser(default_platform, default_dir is None, validate=inputs is not None).parse_args(argv)
    directory = (default_dir if default_dir is not None else args.work_dir).resolve()
    if args.log_level is not None:
        configure_log(args.log_level, sync_pypto=args.log_sync_pypto)
    try:
        _run(args, directory, inputs, compare)
    except (OSError, ValueError, TypeError, AssertionError, RuntimeError) as problem:
        sys.stderr.write(f"error: {problem}\n")
        return 1
    _say(f"Replay finished. DFX artefacts (if any) under {directory / 'dfx_outputs'}")
    return 0


def _run(args: argparse.Namespace, directory: Path, inputs: Inputs | None, compare: Callable[..., Any] | None) -> None:
    options: dict[str, Any] = {"config": _config(args), "recompile": not args.no_recompile}
    if (directory / "golden.py").is_file() and args.validate:
        replay(directory, validate=True, **options)
        _say("Golden validation: PASSED")
    elif (directory / "golden.py").is_file():
        from ..golden import load_golden

        replay(directory, *(value for _, value in load_golden(directory).generate_inputs({})), **options)
    elif inputs is not None:
        arguments = list(inputs())
        replay(directory, *arguments, **options)
        if compare is not None:
            compare(*arguments)
    else:
        raise FileNotFoundError(f"{directory} has no golden.py to take inputs from; run its debug/run.py instead")


if __name__ == "__main__":
    sys.exit(main())
