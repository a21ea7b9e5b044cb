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

TEXT = {"encoding": "utf-8", "errors": "surrogateescape"}
"""How texts are written: names of files that are no UTF-8 come as they are."""

README = """Everything about one check of pytest-pypto:

  report.txt, report.html, report.json    what was found
  repeat.py                               repeats the check without the test:  python repeat.py
  artifact/                               the compiled program; artifact/passes_dump/ has the program after every pass;
                                          artifact/golden.py feeds PyPTO's own tools (replay, execute-artifact)
  inputs.pt, golden.pt                    arguments and expected values (torch.load)
"""

SCRIPT = '''"""Repeat the check that was kept here: python repeat.py [LAYER ...]"""

import sys
from pathlib import Path

from pytest_pypto import toolchain

toolchain.activate()

import torch
from pypto.ir import CompiledProgram

from pytest_pypto import CheckFailed, Golden, Inputs, check
from pytest_pypto.harness.signature import signature_of

here = Path(__file__).resolve().parent
compiled = CompiledProgram.from_dir(str(here / "artifact"))
inputs = Inputs(torch.load(here / "inputs.pt", weights_only=True), signature_of(compiled), seed={seed})
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

GOLDEN = '''"""Inputs and expected outputs of this artifact, for the tools of PyPTO."""

from pathlib import Path

import torch

__outputs__ = {outputs!r}
RTOL, ATOL = {rtol!r}, {atol!r}
HERE = Path(__file__).resolve().parent.parent


def generate_inputs(params):
    """(name, value) pairs, in the order of the parameters."""
    return list(torch.load(HERE / "inputs.pt", weights_only=True).items())


def compute_golden(tensors, params):
    """Write the expected outputs into `tensors`."""
    golden = torch.load(HERE / "golden.pt", weights_only=True)
    returned = golden["returned"] if isinstance(golden["returned"], (list, tuple)) else [golden["returned"]]
    for name, value in [*golden["expected"].items(), *zip({returned!r}, returned)]:
        if name in __outputs__:
            tensors[name].copy_(value)
'''
"""`golden.py` of a kept artifact. Its tolerance is the widest that the check allowed any output."""


def safe_name(name: str) -> str:
    """A directory name for a test id, unique enough to tell variants apart."""
    short = re.sub(r"[^\w.\-]+", "_", name.replace("::", ".")).strip("_.")
    return f"{short[-150:] or 'check'}-{zlib.crc32(name.encode('utf-8', 'surrogateescape')):08x}"


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
    _golden(case, verdict, folder / "artifact" / "golden.py")
    (folder / "report.json").write_text(json_report.render([noted]), **TEXT)
    (folder / "report.txt").write_text(text.render(noted) + "\n", **TEXT)
    (folder / "report.html").write_text(html.render([noted]), **TEXT)
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
        (folder / f"{stage.name}.py").write_text(text + "\n", **TEXT)


def _data(case: Case, folder: Path) -> None:
    import torch

    torch.save(dict(case.inputs), folder / "inputs.pt")
    if case.golden is None:
        return
    golden = {"expected": dict(case.golden.expected), "returned": case.golden.returned, "name": case.golden.name}
    torch.save(golden, folder / "golden.pt")
    options = {"platform": case.platform, "split": case.split, "direction": case.direction, "equal_nan": case.equal_nan}
    options |= {"split_claimed": case.split_claimed, "name": case.name, "layers": case.layers}
    options |= {"sanitize": case.sanitize, "device": dict(case.device)} | _numbers(case)
    (folder / "repeat.py").write_text(SCRIPT.format(options=options, seed=case.inputs.seed), **TEXT)


def _golden(case: Case, verdict: Verdict, target: Path) -> None:
    """Write `golden.py`, unless the artifact brought its own or there is nothing to compare with."""
    from pytest_pypto.harness.returns import names_for

    if case.golden is None or target.exists() or not target.parent.is_dir():
        return
    returned = list(names_for(case) or ()) if case.golden.returned is not None else []
    covered = {*case.golden.expected, *returned}
    outputs = [p.name for p in case.signature.outputs if p.name in covered]
    allowed = [d.tolerance for layer in verdict.layers for d in layer.diffs if d.name in outputs]
    rtol, atol = max((t.rtol for t in allowed), default=1e-5), max((t.atol for t in allowed), default=1e-5)
    target.write_text(GOLDEN.format(outputs=outputs, rtol=rtol, atol=atol, returned=returned), **TEXT)


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
