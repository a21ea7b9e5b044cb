"""Which PyPTO is chosen: an installed one, the embedded one, and what to say about a foreign package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_pypto import toolchain

BOOBY_TRAP = "raise SystemExit('this package must not be imported')\n"


@pytest.fixture
def no_pypto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process in which nothing named pypto has been imported and the finder of the running session is off."""
    monkeypatch.setattr(toolchain, "_users", 0)
    monkeypatch.setattr(toolchain, "_current", None)
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if not isinstance(f, toolchain.EmbeddedFinder)])
    saved = {name: sys.modules[name] for name in sys.modules if name == "pypto" or name.startswith("pypto.")}
    for name in saved:
        monkeypatch.delitem(sys.modules, name)
    yield
    toolchain.deactivate()
    for name in [n for n in sys.modules if n == "pypto" or n.startswith("pypto.")]:
        del sys.modules[name]
    sys.modules.update(saved)


def package(root: Path, *, language: bool, text: str = "from .parser import function, program\n") -> Path:
    """A package `pypto` that must not be imported."""
    folder = root / "pypto"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(BOOBY_TRAP)
    if language:
        (folder / "language").mkdir()
        (folder / "language" / "__init__.py").write_text(BOOBY_TRAP + text)
    return folder


@pytest.mark.usefixtures("no_pypto")
class TestResolve:
    def test_nothing_installed(self) -> None:
        assert toolchain.resolve("auto").kind == "embedded"
        with pytest.raises(toolchain.ToolchainError, match=r"no PyPTO is installed.*--pypto-toolchain=embedded"):
            toolchain.resolve("installed")

    def test_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = package(tmp_path, language=True)
        monkeypatch.syspath_prepend(tmp_path)
        assert toolchain.resolve("auto") == toolchain.Toolchain("installed", str(folder))
        assert toolchain.resolve("installed").kind == "installed"
        chosen = toolchain.resolve("embedded")
        assert (chosen.kind, chosen.foreign) == ("embedded", str(folder))

    @pytest.mark.parametrize(
        ("text", "genuine"),
        [("def program(cls): ...\n", True), ("from .all import *\n", True), ("", False), ("programs = 3\n", False)],
    )
    def test_a_language_without_program_is_another_project(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, genuine: bool
    ) -> None:
        folder = package(tmp_path, language=True, text=text)
        monkeypatch.syspath_prepend(tmp_path)
        chosen = toolchain.resolve("auto")
        assert chosen.kind == ("installed" if genuine else "embedded")
        if not genuine:
            assert chosen.foreign == str(folder)
            with pytest.raises(toolchain.ToolchainError, match=r"it has no `pypto\.language` with `program`"):
                toolchain.resolve("installed")

    def test_a_bare_directory_is_no_language(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = package(tmp_path, language=False)
        (folder / "language").mkdir()
        monkeypatch.syspath_prepend(tmp_path)
        assert toolchain.resolve("auto").kind == "embedded"

    def test_foreign_package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = package(tmp_path, language=False)
        monkeypatch.syspath_prepend(tmp_path)
        chosen = toolchain.resolve("auto")
        assert (chosen.kind, chosen.foreign) == ("embedded", str(folder))
        assert f"unrelated package `pypto` at {folder}" in chosen.describe()
        with pytest.raises(toolchain.ToolchainError, match="another project of the same name") as caught:
            toolchain.resolve("installed")
        assert str(folder) in str(caught.value)

    def test_a_foreign_module_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "pypto.py").write_text(BOOBY_TRAP)
        monkeypatch.syspath_prepend(tmp_path)
        assert toolchain.resolve("auto").foreign == str(tmp_path / "pypto.py")

    def test_our_own_directory_on_the_path_is_not_an_installation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(toolchain.EMBEDDED_DIR.parent)
        assert toolchain.resolve("auto") == toolchain.Toolchain("embedded", str(toolchain.EMBEDDED_DIR))

    def test_unknown_mode(self) -> None:
        with pytest.raises(toolchain.ToolchainError, match="'best': choose one of auto, installed, embedded"):
            toolchain.resolve("best")

    def test_activating_hides_a_foreign_package_and_gives_it_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "pypto"
        folder.mkdir()
        (folder / "__init__.py").write_text("FOREIGN = True\n")
        monkeypatch.syspath_prepend(tmp_path)
        import pypto

        assert pypto.FOREIGN
        toolchain.activate("auto")
        import pypto.ir

        assert not hasattr(pypto, "FOREIGN")
        toolchain.deactivate()
        assert sys.modules["pypto"].FOREIGN

    def test_another_kind_than_the_one_in_force(self) -> None:
        toolchain.activate("embedded")
        with pytest.raises(toolchain.ToolchainError, match=r"embedded PyPTO is in force .* cannot switch to installed"):
            toolchain.activate("installed")
