"""The kit's programs as Python modules: the decorators give what the reference's front end printed, or refuse."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pypto import ir

from ..kit import KIT, needs_kit

pytestmark = needs_kit
NEGATIVE = json.loads((KIT / "negative" / "index.json").read_text(encoding="utf-8")) if KIT.is_dir() else {}


def _module(path: Path) -> ModuleType:
    name = f"kit_language_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


def _front_ends() -> list[Path]:
    return sorted(p.parent for p in KIT.glob("*/program.py") if list(p.parent.glob("*/passes/00_frontend.py")))


@pytest.mark.parametrize("folder", _front_ends(), ids=lambda p: p.name)
def test_program_prints_as_its_front_end_dump(folder: Path) -> None:
    found = [v for v in vars(_module(folder / "program.py")).values() if isinstance(v, ir.Program)]
    if len(found) != 1:
        pytest.skip("a jit entry: it becomes a program when it is compiled")
    want = next(iter(folder.glob("*/passes/00_frontend.py"))).read_text(encoding="utf-8")
    assert ir.python_print(found[0]) == want.rstrip("\n")


@pytest.mark.parametrize("name", sorted(p.parent.name for p in KIT.glob("op_kernels/*/program.py")))
def test_one_operator_kernel_is_accepted(name: str) -> None:
    found = [v for v in vars(_module(KIT / "op_kernels" / name / "program.py")).values() if isinstance(v, ir.Program)]
    assert found


@pytest.mark.parametrize("name", [n for n, r in NEGATIVE.items() if r["stage"] == "parse" or n == "nested_at"])
def test_refused_program(name: str) -> None:
    record = NEGATIVE[name]
    with pytest.raises(Exception) as caught:  # noqa: PT011  the class is checked below
        _module(KIT / "negative" / f"{name}.py")
    error = caught.value
    assert type(error).__name__ == record.get("error", "ParserSyntaxError")
    for word in record["keywords"]:
        assert word.lower() in str(error).lower()
    place = error.span  # type: ignore[attr-defined]
    assert place["file"].endswith(f"{name}.py")
    assert place["line"] > 5
