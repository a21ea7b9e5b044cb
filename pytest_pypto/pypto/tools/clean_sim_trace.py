"""`python -m pypto.tools.clean_sim_trace`: the profile of a simulated run as a trace for a viewer, and as tables.

Writes `trace.clean.json` (open it in Perfetto or chrome://tracing), `instr_metrics.json`, and a copy of what was read
in `raw_simulator/`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .sim.events import trace_events
from .sim.metrics import metrics
from .sim.reading import Profile, ProfileError, damage_named, read_profile

DEFAULT_OUT = "clean_trace"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files; the exit code is 0, or 1 with a line on stderr. Wrong usage exits with 2."""
    args = _arguments(argv)
    out: Path = args.output or args.dump / DEFAULT_OUT
    try:
        profile = read_profile(args.dump)
        with damage_named(args.dump):
            trace = trace_events(profile, args.keep_scalar)
            tables = metrics(profile, args.keep_scalar, args.raw_metrics)
        out.mkdir(parents=True, exist_ok=True)
        _write(out / "trace.clean.json", trace)
        _write(out / "instr_metrics.json", tables)
        if args.copy_raw:
            _copy(profile, out / "raw_simulator")
    except (ProfileError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(f"wrote {out / 'trace.clean.json'} ({len(profile.tasks)} tasks) and {out / 'instr_metrics.json'}")
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pypto.tools.clean_sim_trace", description=__doc__)
    parser.add_argument("dump", type=Path, metavar="DIR", help="an artifact, or its dfx_outputs")
    parser.add_argument("-o", "--output", type=Path, help=f"directory to write to (default: DIR/{DEFAULT_OUT})")
    parser.add_argument("--keep-scalar", action="store_true", help="keep the busy time of the scalar unit")
    parser.add_argument("--raw-metrics", action="store_true", help="every task with all counters instead of sums")
    parser.add_argument(
        "--copy-raw",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="copy the files that were read into raw_simulator/ (default: yes)",
    )
    return parser.parse_args(argv)


def _write(file: Path, data: Any) -> None:
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _copy(profile: Profile, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for file in profile.files:
        if file.parent.resolve() != folder.resolve():
            shutil.copyfile(file, folder / file.name)


if __name__ == "__main__":
    sys.exit(main())
