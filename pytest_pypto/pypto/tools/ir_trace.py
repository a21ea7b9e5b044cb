"""`python -m pypto.tools.ir_trace`: what every pass changed, as one interactive HTML page."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .trace.page import render
from .trace.reading import TraceError, read_trace

PROG = "pypto-ir-trace"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page; the exit code is 0, or 1 with a line on stderr. Wrong usage exits with 2."""
    args = _arguments(argv)
    try:
        title = str(args.paths[0] if len(args.paths) == 1 else f"{len(args.paths)} dumps from {args.paths[0].parent}")
        page = render(read_trace(args.paths), title, args.context)
        write_whole(args.output, page)
    except (TraceError, OSError) as problem:
        print(f"{PROG}: error: {problem}", file=sys.stderr)
        return 1
    print(f"wrote {args.output}")
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=PROG, description=__doc__)
    parser.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="DIR|FILE",
        help="a directory of dumps, a build that has one, or dump files in order",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("ir_trace.html"), help="the page (default: %(default)s)"
    )
    parser.add_argument("--context", type=_count, default=3, help="equal lines around a change (default: %(default)s)")
    return parser.parse_args(argv)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of lines: give an integer >= 0")
    return int(text)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or the file that was there before.

    Raises:
        TraceError: its directory does not exist.
        OSError: it cannot be written.
    """
    if not path.parent.is_dir():
        raise TraceError(f"cannot write {path}: the directory {path.parent} does not exist")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    sys.exit(main())
