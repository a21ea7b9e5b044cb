"""The jit programs of the kit: specialisation gives the text the reference made, and its front-end dump."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto import toolchain
from pytest_pypto.pypto.ir.printer import python_print
from pytest_pypto.pypto.ir.structural import structural_equal
from pytest_pypto.pypto.runtime.config import RunConfig
from tests.kit import KIT, needs_kit

PROGRAMS = ("jit_bound", "jit_direct", "jit_direct_sig", "jit_entry")


@pytest.fixture(autouse=True)
def _embedded() -> Iterator[None]:
    toolchain.activate("embedded")
    yield
    toolchain.deactivate()


def _module(path: Path) -> ModuleType:
    name = f"kit_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@needs_kit
@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_specialisation(name: str, platform: str) -> None:
    pytest.importorskip("torch")
    home = KIT / name
    golden = _module(home / "golden.py")
    kernel = getattr(_module(home / "program.py"), golden.ENTRY)
    arguments = golden.inputs(0)
    if name.endswith("_sig"):
        made = kernel.specialize(s=pl.RUNTIME)
    else:
        made = kernel.specialize(*arguments.values())
    wanted = pl.parse((home / platform / "specialized_source.txt").read_text())
    assert structural_equal(made, wanted)
    assert python_print(made, format=False) == python_print(wanted, format=False)
    dump = (home / platform / "passes" / "00_frontend.py").read_text()
    assert python_print(made, format=False).strip() == dump.strip()


@needs_kit
@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", [p for p in PROGRAMS if p != "jit_direct_sig"])
def test_result(name: str, platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))
    golden = _module(KIT / name / "golden.py")
    kernel = getattr(_module(KIT / name / "program.py"), golden.ENTRY)
    given = golden.inputs(0)
    wanted = {n: v.clone() if torch.is_tensor(v) else v for n, v in given.items()}
    golden.golden(wanted)
    kernel(*given.values(), config=RunConfig(platform=platform))
    for key, value in given.items():
        assert not torch.is_tensor(value) or torch.allclose(value, wanted[key], rtol=1e-5, atol=1e-5), key
