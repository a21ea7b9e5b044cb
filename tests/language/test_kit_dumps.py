"""Every pass dump of the kit: it loads, and its print loads again to an equal program and is the very text."""

from __future__ import annotations

import json
from pathlib import Path

import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser.diagnostics import UndefinedVariableError

from ..kit import KIT, needs_kit

pytestmark = needs_kit
INDEX = json.loads((KIT / "index.json").read_text(encoding="utf-8")) if KIT.is_dir() else {}
PROGRAMS = sorted({p.parents[2].name for p in KIT.glob("*/*/passes/*.py")})

LEAKED = ("odd_split",)
"""The reference declares a local name of these dumps at the head as well; we do not print that line."""


def _body(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _dumps(name: str) -> list[Path]:
    broken = set(INDEX[name].get("reference_cannot_load", []))
    files = sorted((KIT / name).glob("*/passes/*.py"))
    return [f for f in files if str(f.relative_to(KIT / name)) not in broken]


@pytest.mark.parametrize("name", PROGRAMS)
def test_dumps_load_and_print_back(name: str) -> None:
    for path in _dumps(name):
        program = pl.loads(str(path))
        text = ir.python_print(program)
        ir.assert_structural_equal(pl.parse(text), program)
        if name not in LEAKED:
            assert _body(text) == _body(path.read_text(encoding="utf-8")), path.name


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n.startswith(("ex_", "softmax", "tasks", "dyn_"))])
def test_explicit_level_loads_to_the_same(name: str) -> None:
    for path in _dumps(name):
        program = pl.loads(str(path))
        ir.assert_structural_equal(pl.parse(ir.python_print(program, explicit_layout=True)), program)


def _broken() -> list[Path]:
    names = [n for n in PROGRAMS if INDEX[n].get("reference_cannot_load")]
    found = [KIT / n / f for n in names for f in INDEX[n]["reference_cannot_load"]]
    return [f for f in found if f.exists() and "__FREE_VAR" in f.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", _broken(), ids=lambda p: f"{p.parent.parent.name}-{p.stem}")
def test_free_names_are_an_error_with_their_place(path: Path) -> None:
    with pytest.raises(UndefinedVariableError, match="__FREE_VAR' is used but nothing defines it") as caught:
        pl.loads(str(path))
    assert caught.value.span is not None
    line = path.read_text(encoding="utf-8").splitlines()[caught.value.span["line"] - 1]
    start, stop = caught.value.span["column"] - 1, caught.value.span["end_column"] - 1
    assert line[start:stop].endswith("__FREE_VAR")
    from pypto.language.parser.modules import loads

    assert isinstance(loads(path, free_names="symbols"), ir.Program)


def test_printing_is_the_same_in_every_process(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = _dumps("tasks")[0]
    script = (
        "import sys; from pytest_pypto import toolchain; toolchain.activate('embedded')\n"
        "import pypto.language as pl; from pypto import ir; print(ir.python_print(pl.loads(sys.argv[1])))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", script, str(path)],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(texts) == 1
