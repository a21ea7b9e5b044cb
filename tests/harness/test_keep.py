"""Names of kept directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_pypto.harness.keep import fresh_directory, safe_name


def test_names_that_differ_only_in_odd_characters_stay_apart() -> None:
    names = [
        "a.py::t[x/y]",
        "a.py::t[x y]",
        "a.py::t[x_y]",
        "a.py::t[" + "z" * 300 + "1]",
        "a.py::t[" + "z" * 300 + "2]",
        "",
    ]
    assert len({safe_name(n) for n in names}) == len(names)
    assert all(len(safe_name(n)) < 200 and "/" not in safe_name(n) and safe_name(n)[0] != "." for n in names)


@pytest.mark.parametrize("name", ["../../etc::t", "/abs::t", "..", "a\x00b", "ümläut::t", "\udce4::t"])
def test_a_name_never_leaves_its_root(tmp_path: Path, name: str) -> None:
    folder = fresh_directory(tmp_path / "root", name)
    assert folder.parent == tmp_path / "root"
    assert folder.is_dir()


def test_an_old_directory_is_emptied(tmp_path: Path) -> None:
    (fresh_directory(tmp_path, "t") / "old").write_text("x")
    assert list(fresh_directory(tmp_path, "t").iterdir()) == []
