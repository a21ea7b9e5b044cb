"""Keeping everything about one check in one directory, so that it can be looked at and repeated without the test."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_pypto.harness.errors import CannotRun
from pytest_pypto.harness.stages import Stage, stages_of

if TYPE_CHECKING:
    from pytest_pypto.harness.case import Case
    from pytest_pypto.harness.verdict import Verdict

README = """Everything about one check of pytest-pypto:

  report.txt, report.html, report.json    what was found
  repeat.py                               repeats the check without the test:  python repeat.py
  artifact/                               the compiled program; artifact/passes_dump/ has the program after every pass
  inputs.pt, golden.pt                    arguments and expected values (torch.load)
"""

SCRIPT = '''"""Repeat the check that was kept here: python repeat.py [LAYER ...]"""

import sys
from pathlib import Path

from pytest_pypto import toolchain

toolchain.activate()

import torch
from pypto.ir import CompiledProgram

from pytest_pypto import CheckFailed, Golden, check

here = Path(__file__).resolve().parent
compiled = CompiledProgram.from_dir(str(here / "artifact"))
inputs = torch.load(here / "inputs.pt", weights_only=True)
golden = Golden(**torch.load(here / "golden.pt", weights_only=True))
options = {options!r}
if len(sys.argv) > 1:
    options["layers"] = tuple(sys.argv[1:])
try:
    check(compiled, inputs, golden, **options)
except CheckFailed as failure:
    sys.exit(str(failure))
print("passed")
'''


def safe_name(name: str) -> str:
    """A directory name for a test id, unique enough to tell variants apart."""
    short = re.sub(r"[^\w.\-]+", "_", name.replace("::", ".")).strip("_.")
    return f"{short[-150:] or 'check'}-{zlib.crc32(name.encode()):08x}"


def fresh_directory(root: Path, name: str) -> Path:
    """An empty directory for a test; the root keeps itself out of version control."""
    folder = root / safe_name(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ignore = root / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def keep(case: Case, verdict: Verdict, root: Path, name: str = "") -> Verdict:
    """Write everything about a check below `root`; returns the verdict with the place noted in it.

    Args:
        case, verdict: the check.
        root: directory for all checks.
        name: of this check when one case has several.
    """
    from pytest_pypto.report import html, json_report, text

    folder = fresh_directory(root, name or case.name)
    noted = verdict.with_(kept=str(folder))
    _artifact(case, folder / "artifact")
    _data(case, folder)
    (folder / "report.json").write_text(json_report.render([noted]), encoding="utf-8")
    (folder / "report.txt").write_text(text.render(noted) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(html.render([noted]), encoding="utf-8")
    (folder / "README.txt").write_text(README, encoding="utf-8")
    return noted


def _artifact(case: Case, target: Path) -> None:
    source = Path(os.fspath(case.compiled))
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".complete"))
    dumps = target / "passes_dump"
    if not any(dumps.glob("*.py")):
        try:
            write_dumps(stages_of(case.compiled, case.platform), dumps)
        except CannotRun:
            return


def write_dumps(stages: Sequence[Stage], folder: Path) -> None:
    """Write the stages as dump files."""
    from pypto import ir

    folder.mkdir(parents=True, exist_ok=True)
    text = ""
    for stage in stages:
        text = ir.python_print(stage.program) if stage.changed or not text else text
        (folder / f"{stage.name}.py").write_text(text + "\n", encoding="utf-8")


def _data(case: Case, folder: Path) -> None:
    import torch

    torch.save(dict(case.inputs), folder / "inputs.pt")
    if case.golden is None:
        return
    golden = {"expected": dict(case.golden.expected), "returned": case.golden.returned, "name": case.golden.name}
    torch.save(golden, folder / "golden.pt")
    options = {"platform": case.platform, "split": case.split, "direction": case.direction, "equal_nan": case.equal_nan}
    options |= {"split_claimed": case.split_claimed} | _numbers(case)
    (folder / "repeat.py").write_text(SCRIPT.format(options=options), encoding="utf-8")


def _numbers(case: Case) -> dict[str, object]:
    """Tolerances of the case as arguments of `check`."""
    found: dict[str, object] = {}
    for source in reversed(list(case.sources.get("", ()))):
        for key in ("rtol", "atol"):
            if getattr(source, key) is not None:
                found[key] = getattr(source, key)
    single = {}
    for name, sources in case.sources.items():
        pair = [next((getattr(s, k) for s in sources if getattr(s, k) is not None), None) for k in ("rtol", "atol")]
        if name and None not in pair:
            single[name] = (pair[0], pair[1])
    return found | ({"tolerances": single} if single else {})
