"""The public names of the language, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pypto.backend as backend
import pypto.debug as debug
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto import ir
from pypto.language.parser import diagnostics
from pypto.pypto_core import passes

from ..kit import SPEC, needs_spec

ROOT = Path(__file__).parents[2]
SURFACE = json.loads((SPEC / "api_surface.json").read_text(encoding="utf-8")) if SPEC.is_dir() else {}

MODULES = {
    "pypto.language": pl,
    "pypto.language.distributed": pld,
    "pypto.language.parser.diagnostics": diagnostics,
    "pypto.language.tensor": pl.tensor,
    "pypto.language.tile": pl.tile,
    "pypto.language.system": pl.system,
    "pypto.language.array": pl.array,
    "pypto.language.adir": pl.adir,
    "pypto.language.optimizations": pl.optimizations,
    "pypto.ir": ir,
    "pypto.backend": backend,
    "pypto.debug": debug,
    "pypto.pypto_core.passes": passes,
}
LEFT_OUT = {
    "pypto.language": set(),
    "pypto.language.distributed": {"op", "typing"},
    "pypto.language.parser.diagnostics": set(),
    "pypto.ir": {"comm_layout", "tensor_view_semantics"},
    "pypto.backend": {"pto_backend"},
    "pypto.pypto_core.passes": {"l0_tile_chooser", "stmt_dependency_analysis", "verify_tensor_view_canonical"},
}
"""Names that only the reference's own modules use among themselves."""


@needs_spec
@pytest.mark.parametrize("module", MODULES)
def test_every_listed_name_is_there(module: str) -> None:
    listed = set(SURFACE[module]["names"]) - LEFT_OUT.get(module, set())
    missing = sorted(n for n in listed if not hasattr(MODULES[module], n))
    assert missing == []


@needs_spec
def test_enumerations_have_the_listed_members() -> None:
    for name, record in {**SURFACE["pypto.language"]["names"], **SURFACE["pypto.ir"]["names"]}.items():
        if record["kind"] == "enum" and name not in ("DiagnosticCheck", "DiagnosticPhase"):
            enum = getattr(pl, name, None) or getattr(ir, name)
            got = {k: m.value for k, m in enum.__members__.items()}
            assert record["members"].items() <= got.items(), name


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match=r"module 'pypto\.language' has no attribute 'frobnicate'"):
        _ = pl.frobnicate
    with pytest.raises(AttributeError, match=r"module 'pypto\.ir' has no attribute 'frobnicate'"):
        _ = ir.frobnicate
    assert "Tensor" in dir(pl)
    assert "IRBuilder" in dir(ir)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("range", (4,)),
        ("parallel", (4,)),
        ("unroll", (4,)),
        ("while_", ()),
        ("yield_", (1,)),
        ("cond", (True,)),
        ("static_print", ()),
        ("static_assert", (True,)),
        ("func_attr", ({},)),
        ("at", (pl.Level.CORE_GROUP,)),
        ("cluster", ()),
        ("spmd", (4,)),
        ("submit", ()),
        ("spmd_submit", ()),
        ("no_dep", (1,)),
        ("dump_tag", (1,)),
    ],
)
def test_words_have_no_meaning_outside_a_function(name: str, args: tuple[object, ...]) -> None:
    with pytest.raises(RuntimeError, match=rf"pl\.{name}\(\) has a meaning inside a function"):
        getattr(pl, name)(*args)


def test_options_as_python_values() -> None:
    assert pl.split(pl.SplitMode.UP_DOWN) == pl.optimizations.Split(pl.SplitMode.UP_DOWN)
    assert pl.cross_core_slot(slot_num=3).slot_num == 3
    with pytest.raises(TypeError, match=r"pl\.split\(\) takes a pl\.SplitMode, got 1"):
        pl.split(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="takes a positive integer, got 0"):
        pl.cross_core_slot(slot_num=0)


def test_memory_references_as_python_values() -> None:
    assert isinstance(pl.MemRef("a"), pl.MemRef)
    assert isinstance(pl.MemRef("a"), ir.MemRef)
    assert pl.MemRef("a", slots=3)[2].slot_index_.value == 2
    assert pl.MemRef("base", 128, 64).byte_offset_.value == 128
    assert pl.MemRef(pl.Mem.Vec, 64, 32, 7).base_.name_hint == "mem_vec_7"
    with pytest.raises(IndexError, match=r"slot 3 of buffer 'a' is outside 0\.\.2"):
        _ = pl.MemRef("a", slots=3)[3]
    with pytest.raises(ValueError, match=r"slots= of pl\.MemRef is a positive integer, got 0"):
        pl.MemRef("a", slots=0)
    with pytest.raises(ValueError, match="must not be empty"):
        pl.MemRef("")
    with pytest.raises(TypeError, match=r"unsupported pl\.MemRef arguments"):
        pl.MemRef(1, 2)


def _run(code: str) -> str:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_language_ir_and_passes_need_no_torch_and_no_numpy() -> None:
    code = (
        "import pytest_pypto.pypto.language as pl, pytest_pypto.pypto.ir as ir, pytest_pypto.pypto.passes.manager\n"
        "for n in dir(pl) + dir(ir):\n"
        "    if n not in ('jit', 'JITFunction', 'CompiledProgram', 'DistributedCompiledProgram', 'compile'):\n"
        "        getattr(pl, n, None), getattr(ir, n, None)\n"
        "pl.parse('import pypto.language as pl\\n@pl.function\\ndef f(x: pl.Tensor[[4], pl.FP32]):\\n"
        "    return pl.exp(x)')\n"
        "print(sorted({'torch', 'numpy', 'ml_dtypes'} & set(sys.modules)))"
    )
    assert _run(code) == "[]\n"
