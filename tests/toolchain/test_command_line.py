"""`python -m pytest_pypto` and `pypto-embedded`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_pypto import __main__ as command


def run(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`python -m pytest_pypto WORDS`."""
    return subprocess.run(
        [sys.executable, "-m", "pytest_pypto", *map(str, words)], capture_output=True, text=True, timeout=120, cwd=cwd
    )


def test_run_gives_the_script_pypto_its_arguments_and_its_directory(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NUMBER = 7\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside\nfrom pypto.ir import Var\n"
        "print(__name__, sys.argv[1:], beside.NUMBER, Var.__module__)\nsys.exit(3)\n"
    )
    done = run("run", script, "a", "--flag=1", "-x")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.strip() == "__main__ ['a', '--flag=1', '-x'] 7 pytest_pypto.pypto.ir.expr"


def test_run_of_a_missing_file_says_so() -> None:
    done = run("run", "nowhere.py")
    assert done.returncode == 2
    assert "no such file: nowhere.py" in done.stderr


def test_run_with_an_installed_pypto_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("")
    done = run("run", "--toolchain=installed", tmp_path / "s.py")
    assert done.returncode == 2
    assert "no PyPTO is installed" in done.stderr
    assert "--toolchain=embedded" in done.stderr


def test_info_lists_versions_operators_and_passes() -> None:
    done = run("info")
    assert done.returncode == 0, done.stderr
    for text in ("pytest-pypto", "embedded PyPTO", "python", "platforms:", "tile.matmul", "ConvertToSSA"):
        assert text in done.stdout


def test_tools_are_listed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.tools(["--help"]) == 0
    assert "execute-artifact" in capsys.readouterr().out
    assert command.tools([]) == 2
    capsys.readouterr()
    assert command.tools(["fly"]) == 2
    assert "unknown tool 'fly': choose one of execute-artifact, replay" in capsys.readouterr().err


@pytest.mark.parametrize("tool", sorted(command.TOOLS))
def test_every_tool_has_help(tool: str) -> None:
    done = run("tool", tool, "--help")
    assert done.returncode == 0, done.stderr
    assert "usage: " in done.stdout


@pytest.mark.parametrize("words", [["-m", "pytest_pypto", "info"], ["-m", "pytest_pypto", "tool", "--help"]])
def test_a_reader_that_stops_early_is_no_error(words: list[str]) -> None:
    child = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert (child.stderr.read(), child.wait(120)) == ("", 0)
    child.stderr.close()
