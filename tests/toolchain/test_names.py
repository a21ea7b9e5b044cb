"""`pypto.X` and `pytest_pypto.pypto.X` are one module, whichever is imported first."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


def run(code: str, *, path: str | None = None) -> str:
    """Standard output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, cwd=path
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ORDERS = ["import pypto.ir, pytest_pypto.pypto.ir", "import pytest_pypto.pypto.ir, pypto.ir"]


@pytest.mark.parametrize("first", ORDERS)
def test_one_module_under_two_names(first: str) -> None:
    out = run(f"""
        from pytest_pypto import toolchain
        toolchain.activate()
        {first}
        import sys
        assert sys.modules["pypto.ir"] is sys.modules["pytest_pypto.pypto.ir"]
        assert pypto is pytest_pypto.pypto and pypto.ir is pytest_pypto.pypto.ir
        from pypto.ir.expr import Var
        from pytest_pypto.pypto.ir.expr import Var as Same
        assert Var is Same
        print(pypto.ir.__spec__.name, pypto.ir.__name__)
    """)
    assert out == "pytest_pypto.pypto.ir pytest_pypto.pypto.ir"


def test_modules_loaded_before_the_alias_get_it() -> None:
    out = run("""
        from pytest_pypto.pypto.ir import expr
        from pytest_pypto import toolchain
        toolchain.activate()
        import pypto.ir.expr
        print(pypto.ir.expr is expr)
    """)
    assert out == "True"


@pytest.mark.parametrize(
    "order", ["pypto.debug.torch_codegen", "pytest_pypto.pypto.debug.torch_codegen", "pypto.debug"]
)
def test_a_name_that_is_a_submodule_and_a_function(order: str) -> None:
    """Importing the submodule under either name leaves the function bound in its parent."""
    pytest.importorskip("torch")
    out = run(f"""
        from pytest_pypto import toolchain
        toolchain.activate()
        import importlib
        importlib.import_module("{order}")
        importlib.import_module("pypto.debug.torch_codegen")
        import pypto.debug
        print(callable(pypto.debug.torch_codegen))
    """)
    assert out == "True"


@pytest.mark.parametrize("order", ["pypto.ir.compile", "pytest_pypto.pypto.ir.compile", "pypto.ir"])
def test_compile_stays_a_function(order: str) -> None:
    out = run(f"""
        from pytest_pypto import toolchain
        toolchain.activate()
        import importlib
        importlib.import_module("{order}")
        importlib.import_module("pypto.ir.compile")
        from pypto import ir
        print(callable(ir.compile))
    """)
    assert out == "True"


def test_an_unknown_submodule_is_reported_under_the_name_used() -> None:
    out = run("""
        from pytest_pypto import toolchain
        toolchain.activate()
        try:
            import pypto.nowhere
        except ModuleNotFoundError as error:
            print(error.name)
    """)
    assert out == "pypto.nowhere"


def test_a_module_that_fails_leaves_no_name_behind(tmp_path) -> None:
    out = run("""
        import sys
        from pytest_pypto import toolchain
        toolchain.activate()
        import pypto.ir
        import pathlib
        spec = sys.meta_path[0]._real_spec("pytest_pypto.pypto.ir.expr", pypto.ir.__path__)
        loader = type(spec.loader)("pytest_pypto.pypto.ir.broken", "nowhere.py")
        import types
        module = types.ModuleType("pytest_pypto.pypto.ir.broken")
        try:
            loader.exec_module(module)
        except OSError:
            print("pypto.ir.broken" in sys.modules)
    """)
    assert out == "False"


def test_nested_users_are_counted() -> None:
    out = run("""
        import sys
        from pytest_pypto import toolchain
        toolchain.activate(); toolchain.activate("embedded")
        toolchain.deactivate()
        import pypto.ir
        print(toolchain.current().kind, "pypto" in sys.modules)
        toolchain.deactivate()
        print(toolchain.current(), "pypto" in sys.modules, any("Embedded" in type(f).__name__ for f in sys.meta_path))
        toolchain.deactivate()
    """)
    assert out.splitlines() == ["embedded True", "None False False"]


def test_nothing_heavy_is_imported() -> None:
    out = run("""
        import sys
        import pytest_pypto, pytest_pypto.plugin, pytest_pypto.toolchain
        pytest_pypto.toolchain.activate()
        import pypto
        print([m for m in ("torch", "numpy", "pytest_pypto.harness.run") if m in sys.modules])
    """)
    assert out == "[]"


def test_public_names_are_there_and_lazy() -> None:
    out = run("""
        import sys, pytest_pypto
        before = "pytest_pypto.harness.verdict" in sys.modules
        names = [n for n in pytest_pypto.__all__ if not hasattr(pytest_pypto, n)] if "torch" in sys.modules else []
        pytest_pypto.Verdict
        print(before, names, "pytest_pypto.harness.verdict" in sys.modules)
        try:
            pytest_pypto.nothing
        except AttributeError as error:
            print(error)
    """)
    assert out.splitlines() == ["False [] True", "module 'pytest_pypto' has no attribute 'nothing'"]


def test_modules_behind_the_public_name_passes() -> None:
    """`passes` is the vendor's module; modules of the package of that name can be imported `as` something."""
    import pypto

    import pytest_pypto.pypto.passes.manager as inner

    assert inner.__name__ == "pytest_pypto.pypto.passes.manager"
    assert pypto.passes.simplify().name == "Simplify"
    with pytest.raises(AttributeError):
        pypto.passes.nothing_of_that_name  # noqa: B018
