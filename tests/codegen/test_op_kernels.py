"""One-operator kernels compiled by our passes: the `.pto` text is the reference's, letter by letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_pypto.pypto import ir
from pytest_pypto.pypto.language.parser.modules import parse_all
from tests.kit import KIT, needs_kit

pytestmark = needs_kit


def _cases() -> list[object]:
    folders = sorted(p for p in (KIT / "op_kernels").glob("*") if p.is_dir())
    return [pytest.param(f, p, id=f"{f.name}-{p}") for f in folders for p in ("a2a3sim", "a5sim")]


def _program(folder: Path) -> ir.Program:
    found = parse_all((folder / "program.py").read_text(encoding="utf-8"), "program.py").values()
    return next(p for p in found if isinstance(p, ir.Program))


@pytest.mark.parametrize(("folder", "platform"), _cases())
def test_same_text(folder: Path, platform: str, tmp_path: Path) -> None:
    options = {"skip_ptoas": True, "emit_source_loc": False, "dump_passes": False}
    ir.compile(_program(folder), platform=platform, output_dir=str(tmp_path / "out"), **options)
    (kernel,) = (tmp_path / "out" / "kernels").rglob("*.pto")
    theirs = (folder / f"{platform}.pto").read_text(encoding="utf-8")
    assert kernel.read_text(encoding="utf-8") == re.sub(r" loc\(\"[^)]*\)", "", theirs)
