"""Which room may import which: read from the sources, so that an arrow that points up fails here."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import pytest_pypto

ROOT = Path(pytest_pypto.__file__).resolve().parent

OUTER: dict[str, set[str]] = {
    "__init__": {"harness", "check"},
    "__main__": {"toolchain", "info"},
    "info": {"options", "toolchain", "pypto"},
    "plugin": {"options", "markers", "selection", "collector", "hookspec", "workbench", "expected_error"}
    | {"toolchain", "harness", "global_state", "known", "known_update", "claimed", "collected", "record"},
    "collected": {"markers", "nearest", "selection"},
    "claimed": {"selection", "harness"},
    "known": {"options", "selection"},
    "known_update": {"known"},
    "workbench": {"known", "options", "markers", "selection", "repeat", "harness", "check", "report"}
    | {"failures", "record"},
    "record": {"harness"},
    "repeat": {"options"},
    "selection": {"options", "markers", "nearest", "toolchain"},
    "markers": {"options", "nearest", "check"},
    "nearest": set(),
    "options": {"toolchain"},
    "collector": set(),
    "global_state": set(),
    "hookspec": set(),
    "expected_error": {"failures", "harness"},
    "failures": set(),
    "harness": {"report", "check", "toolchain"},
    "report": {"check"},
    "check": set(),
    "toolchain": set(),
}
"""Room -> rooms it may import. The harness reaches PyPTO only under its public name `pypto`."""

LEVEL = {
    **dict.fromkeys(("ir", "backend"), 0),
    "language": 1,
    "passes": 2,
    **dict.fromkeys(("codegen", "device", "debug"), 3),
    **dict.fromkeys(("runtime", "jit", "tools"), 4),
}
"""Levels inside `pypto`: imports go down, or stay in the same room."""

BESIDE = {("ir", "backend"), ("backend", "ir"), ("jit", "runtime"), ("tools", "runtime")}
"""Rooms of one level that may still see each other."""

APART = {("debug", "device"), ("device", "debug")}
"""Independent computations of the same thing; they are worth comparing only while they share nothing."""

FACADES = {
    *("__init__", "language/__init__", "ir/__init__", "ir/compile", "ir/compiled_program", "ir/pass_manager"),
    *("ir/distributed_compiled_program", "ir/instruments", "debug/__init__"),
}
"""Thin modules that only give public names a home; these may point up. Everything in `pypto_core/` is one too."""

NO_ARRAYS = ("ir", "language", "passes", "codegen", "backend")
"""Rooms that must work without torch and numpy."""

CALLS_BACK = {("check", "harness")}
"""`pytest_pypto.check(...)` is the function of the same name, handed on when it is called."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def dotted(path: Path) -> list[str]:
    """Parts of a module's name below `pytest_pypto`."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return parts


@cache
def imports(path: Path) -> list[tuple[int, list[str]]]:
    """(line, absolute name in parts) of every import that happens at run time."""
    return list(read_imports(path))


def read_imports(path: Path) -> Iterator[tuple[int, list[str]]]:
    package = ["pytest_pypto", *dotted(path)[:-1]]
    for node in runtime_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = (node.module or "").split(".") if node.module else []
            if node.module:
                yield node.lineno, [*start, *module]
            else:
                for alias in node.names:
                    yield node.lineno, [*start, alias.name]


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, without the bodies of `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for inner in node.orelse:
                yield inner
                yield from runtime_nodes(inner)
            continue
        yield node
        yield from runtime_nodes(node)


def outer_faults() -> Iterator[str]:
    for path in modules():
        parts = dotted(path)
        room = parts[0]
        if room == "pypto":
            continue
        if room not in OUTER:
            yield f"{path.relative_to(ROOT)}: room {room!r} is not in the design; add it to OUTER with its arrows"
            continue
        for line, name in imports(path):
            target = name[1] if name[0] == "pytest_pypto" and len(name) > 1 else room
            if target not in OUTER[room] | {room} and (room, target) not in CALLS_BACK:
                yield f"{path.relative_to(ROOT)}:{line} imports {'.'.join(name)}: {room} must not see {target}"


def inner_faults() -> Iterator[str]:
    for path in modules():
        parts = dotted(path)
        if parts[0] != "pypto" or "/".join(parts[1:]) in FACADES or parts[1] == "pypto_core":
            continue
        room = parts[1]
        for line, name in imports(path):
            where = f"{path.relative_to(ROOT)}:{line} imports {'.'.join(name)}"
            if name[0] == "pypto":
                yield f"{where}: inner imports say pytest_pypto.pypto"
            if name[:2] == ["pytest_pypto", "pypto"] and len(name) > 2:
                yield from inner_arrow(room, name[2], where)
            elif name[0] == "pytest_pypto" and name[1:] != ["toolchain"]:
                yield f"{where}: the embedded PyPTO must not see the plugin"


def inner_arrow(room: str, target: str, where: str) -> Iterator[str]:
    if target == room or target not in LEVEL or room not in LEVEL:
        return
    if (room, target) in APART:
        yield f"{where}: {room} and {target} are independent on purpose"
    elif LEVEL[target] >= LEVEL[room] and (room, target) not in BESIDE:
        yield f"{where}: {room} (level {LEVEL[room]}) must not see {target} (level {LEVEL[target]})"


def test_the_reader_sees_relative_absolute_and_inner_imports(tmp_path: Path) -> None:
    """An arrow that this test cannot see would be no arrow."""
    manager = {".".join(name) for _, name in imports(ROOT / "pypto" / "passes" / "manager.py")}
    assert {"pytest_pypto.pypto.ir.program", "pytest_pypto.pypto.passes.base", "enum"} <= manager
    cache_module = {".".join(name) for _, name in imports(ROOT / "harness" / "cache.py")}
    assert {"pypto", "pytest_pypto.harness.store", "torch"} <= cache_module
    assert "pytest_pypto.check.compare" not in {".".join(n) for _, n in imports(ROOT / "harness" / "layers.py")}
    assert list(inner_arrow("ir", "passes", "x")) == ["x: ir (level 0) must not see passes (level 2)"]
    assert list(inner_arrow("debug", "device", "x")) == ["x: debug and device are independent on purpose"]


def test_arrows_of_the_plugin_point_down() -> None:
    assert list(outer_faults()) == []


def test_arrows_inside_pypto_point_down() -> None:
    assert list(inner_faults()) == []


def test_facades_exist_and_are_thin() -> None:
    for name in FACADES - {"__init__", "language/__init__", "ir/__init__"}:
        path = ROOT / "pypto" / f"{name}.py"
        assert path.is_file(), f"{name} is listed as a facade and is not there"
        assert len(path.read_text(encoding="utf-8").splitlines()) < 80, f"{name} is no thin facade any more"


@pytest.mark.parametrize("room", NO_ARRAYS)
def test_rooms_without_arrays(room: str) -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{line} imports {name[0]}"
        for path in (ROOT / "pypto" / room).rglob("*.py")
        for line, name in imports(path)
        if name[0] in ("torch", "numpy", "ml_dtypes")
    ]
    assert faults == []


def test_the_device_does_not_know_torch() -> None:
    faults = [str(p) for p in (ROOT / "pypto" / "device").rglob("*.py") for _, n in imports(p) if n[0] == "torch"]
    assert faults == []


def test_the_harness_uses_the_public_name_only() -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ("harness", "check", "report", "workbench.py", "plugin.py", "selection.py")
        for path in ([ROOT / room] if room.endswith(".py") else (ROOT / room).rglob("*.py"))
        for line, name in imports(path)
        if name[:2] == ["pytest_pypto", "pypto"]
    ]
    assert faults == []


def test_compiling_needs_neither_torch_nor_numpy() -> None:
    """The front end, the passes and code generation run where neither is installed."""
    code = """
import sys
for name in ("torch", "numpy", "ml_dtypes"):
    sys.modules[name] = None
from pytest_pypto import toolchain
toolchain.activate()
import pypto.language as pl
from pypto import ir
from pypto.ir.pass_manager import PassManager
from pypto.backend import BackendType, set_backend_type
program = pl.parse('''
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.add(x, 1.0), [0, 0])
        return o
''')
set_backend_type(BackendType.Ascend910B)
print(len(ir.python_print(PassManager.get_strategy().run_passes(program))) > 100)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_every_module_imports() -> None:
    pytest.importorskip("torch")
    failed = []
    for module in pkgutil.walk_packages(pytest_pypto.__path__, "pytest_pypto."):
        try:
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        except Exception as exc:
            failed.append(f"{module.name}: {type(exc).__name__}: {exc}")
    assert failed == []
