"""Command line: `python -m pytest_pypto run FILE [ARGS]`, `info`, and the tools of the embedded PyPTO."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_pypto import toolchain

TOOLS = {
    "execute-artifact": ("runtime.execute_artifact", "run one artifact directory, or a batch manifest"),
    "replay": ("runtime.debug.replay", "run a (possibly edited) build directory again"),
    "ir-trace": ("tools.ir_trace", "pass dumps as one HTML page"),
    "memory-map": ("tools.memory_map", "on-chip memory as HTML"),
    "clean-sim-trace": ("tools.clean_sim_trace", "simulator dump as a readable trace"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Entry of `python -m pytest_pypto`; returns the exit code."""
    args = _parser().parse_args(argv)
    code: int = args.action(args)
    return code


def _until_closed(action: Callable[[], int]) -> int:
    """Run something that writes; a reader that stops early (`| head`) is no error."""
    try:
        code = action()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
        return 0
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pytest_pypto", description="Helpers of pytest-pypto.")
    actions = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = actions.add_parser("run", help="run a Python script with `pypto` importable")
    _toolchain_flag(run)
    run.add_argument("file", type=Path, help="the script")
    run.add_argument("args", nargs=argparse.REMAINDER, help="arguments of the script")
    run.set_defaults(action=_run)
    info = actions.add_parser("info", help="versions, the PyPTO in force, its operators and passes")
    _toolchain_flag(info)
    info.set_defaults(action=_info)
    tool = actions.add_parser("tool", help="a tool of the embedded PyPTO (also: pypto-embedded TOOL)")
    tool.add_argument("args", nargs=argparse.REMAINDER, help=", ".join(TOOLS))
    tool.set_defaults(action=lambda args: tools(args.args))
    return parser


def _toolchain_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--toolchain", choices=toolchain.MODES, default="auto", help="which PyPTO (default: auto)")


def _run(args: argparse.Namespace) -> int:
    if not args.file.is_file():
        return _complain(f"no such file: {args.file}")
    try:
        toolchain.activate(args.toolchain)
    except toolchain.ToolchainError as exc:
        return _complain(str(exc).replace("--pypto-toolchain", "--toolchain"))
    sys.argv = [str(args.file), *args.args]
    sys.path[0] = str(args.file.resolve().parent)
    runpy.run_path(str(args.file), run_name="__main__")
    return 0


def _info(args: argparse.Namespace) -> int:
    try:
        chosen = toolchain.activate(args.toolchain)
    except toolchain.ToolchainError as exc:
        return _complain(str(exc).replace("--pypto-toolchain", "--toolchain"))
    from pytest_pypto.info import describe

    return _until_closed(lambda: _write(describe(chosen)))


def _write(lines: Sequence[str]) -> int:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def tools(argv: Sequence[str] | None = None) -> int:
    """Entry of the console script `pypto-embedded TOOL [ARGS]`; returns the exit code."""
    return _until_closed(lambda: _tools(argv))


def _tools(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write("usage: pypto-embedded TOOL [ARGS]\n\ntools:\n")
        sys.stdout.writelines(f"  {name:18}{what}\n" for name, (_, what) in TOOLS.items())
        return 0 if words else 2
    name = words[0].replace("_", "-")
    if name not in TOOLS:
        return _complain(f"unknown tool {words[0]!r}: choose one of {', '.join(TOOLS)}")
    toolchain.activate("embedded")
    module = f"{toolchain.REAL}.{TOOLS[name][0]}"
    if importlib.util.find_spec(module) is None:
        return _complain(f"{name} is not part of this version of pytest-pypto")
    sys.argv = [f"pypto-embedded {name}", *words[1:]]
    runpy.run_module(module, run_name="__main__", alter_sys=False)
    return 0


def _complain(message: str) -> int:
    sys.stderr.write(f"error: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
