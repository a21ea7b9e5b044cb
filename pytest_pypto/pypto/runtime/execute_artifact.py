"""Run one artifact directory, or a batch of them, from the command line.

python -m pypto.runtime.execute_artifact --device-id 0 --work-dir D --platform a2a3sim
python -m pypto.runtime.execute_artifact --device-id 0 --batch-manifest F
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .config import RunConfig
from .options import DfxOptions

MARKER = "PYPTO_EXEC_RESULT"


class ArtifactSetupError(RuntimeError):
    """An artifact that cannot be opened: nothing was run."""


def execute_artifact_dir(
    work_dir: str | Path,
    platform: str,
    device_id: int,
    *,
    dfx: DfxOptions = DfxOptions(),  # noqa: B008  a frozen value; the signature shows it
    validate: bool = True,
) -> None:
    """Run an artifact on the inputs of its `golden.py` and compare; the outputs are stored in `data/actual`.

    Raises:
        ArtifactSetupError: the directory cannot be opened, or has no `golden.py`.
        AssertionError: the results differ from the golden.
    """
    from .compiled import CompiledProgram
    from .golden import load_golden, run_golden

    directory = Path(work_dir).resolve()
    try:
        compiled = CompiledProgram.from_dir(directory)
        config = _config(platform, device_id, dfx)
        compiled.load()
        load_golden(directory)
    except Exception as problem:  # golden.py is the user's code; whatever goes wrong before the run is a set-up error
        raise ArtifactSetupError(f"{directory}: {problem}") from problem
    run_golden(directory, lambda *args: compiled(*args, config=config), validate=validate)


def _config(platform: str, device_id: int, dfx: DfxOptions) -> RunConfig:
    return RunConfig(platform=platform, device_id=device_id, **dataclasses.asdict(dfx))


def execute_batch_manifest(
    manifest_path: str | Path,
    device_id: int,
    *,
    dfx: DfxOptions = DfxOptions(),  # noqa: B008  a frozen value; the signature shows it
    validate: bool = False,
) -> bool:
    """Run the entries `{"work_dir", "platform"}` of a JSON list in order, one result line each on stdout.

    Returns:
        True when every entry passed; an empty list passes.

    Raises:
        ValueError: the manifest is no such list.
    """
    entries = _manifest(Path(manifest_path))
    results = [_batch_entry(entry, device_id, dfx, validate) for entry in entries]
    return all(results)


def _manifest(path: Path) -> list[dict[str, str]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise ValueError(f"cannot read batch manifest {path}: {problem}") from None
    good = isinstance(entries, list) and all(
        isinstance(e, dict) and isinstance(e.get("work_dir"), str) and isinstance(e.get("platform"), str)
        for e in entries
    )
    if not good:
        raise ValueError(f'{path} must be a JSON list of {{"work_dir": ..., "platform": ...}} objects')
    return list(entries)


def _batch_entry(entry: dict[str, str], device_id: int, dfx: DfxOptions, validate: bool) -> bool:
    where = entry["work_dir"]
    try:
        execute_artifact_dir(where, entry["platform"], device_id, dfx=dfx, validate=validate)
    except ArtifactSetupError:
        traceback.print_exc()
        _say(f"{MARKER}=INFRA work_dir={where}")
        return False
    except Exception:  # one entry must not end the batch, whatever its program or golden.py raises
        traceback.print_exc()
        _say(f"{MARKER}=FAIL work_dir={where}")
        return False
    _say(f"{MARKER}=PASS work_dir={where} device={device_id}")
    return True


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pypto.runtime.execute_artifact", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--device-id", type=int, required=True, help="device to run on")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--work-dir", help="an artifact directory")
    what.add_argument("--batch-manifest", help="a JSON list of work_dir and platform")
    parser.add_argument("--platform", help="platform of --work-dir")
    add_dfx_options(parser)
    parser.add_argument("--no-validate", action="store_true", help="run without comparing")
    return parser


def add_dfx_options(parser: argparse.ArgumentParser) -> None:
    """The diagnostics flags."""
    parser.add_argument("--enable-chip-swimlane", nargs="?", const=4, default=None, type=int, metavar="LEVEL")
    parser.add_argument("--enable-l2-swimlane", nargs="?", const=4, default=None, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--dump-args", nargs="?", const=1, default=0, type=int, metavar="LEVEL")
    parser.add_argument("--enable-pmu", nargs="?", const=2, default=0, type=int, metavar="EVENT")
    parser.add_argument("--enable-dep-gen", action="store_true")
    parser.add_argument("--enable-scope-stats", action="store_true")


def dfx_of(args: argparse.Namespace) -> DfxOptions:
    """The diagnostics that the flags ask for."""
    level = args.enable_chip_swimlane if args.enable_chip_swimlane is not None else args.enable_l2_swimlane
    return DfxOptions(
        enable_chip_swimlane=level or 0,
        enable_dump_args=args.dump_args,
        enable_pmu=args.enable_pmu,
        enable_dep_gen=args.enable_dep_gen,
        enable_scope_stats=args.enable_scope_stats,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Entry of the command line; 0 when everything passed, else 1."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.work_dir and not args.platform:
        parser.error("--work-dir needs --platform")
    try:
        dfx = dfx_of(args)
    except (TypeError, ValueError) as problem:
        parser.error(str(problem))
    if args.batch_manifest:
        return (
            0 if execute_batch_manifest(args.batch_manifest, args.device_id, dfx=dfx, validate=_validates(args)) else 1
        )
    return _single(args, dfx)


def _validates(args: argparse.Namespace) -> bool:
    return not bool(args.no_validate)


def _single(args: argparse.Namespace, dfx: DfxOptions) -> int:
    outcome: Any = "PASS"
    try:
        execute_artifact_dir(args.work_dir, args.platform, args.device_id, dfx=dfx, validate=_validates(args))
    except ArtifactSetupError:
        traceback.print_exc()
        outcome = "INFRA"
    except Exception:  # the last line must say FAIL, whatever the program or golden.py raises
        traceback.print_exc()
        outcome = "FAIL"
    _say(f"{MARKER}={outcome}" + (f" device={args.device_id}" if outcome == "PASS" else ""))
    return 0 if outcome == "PASS" else 1


if __name__ == "__main__":
    sys.exit(main())
