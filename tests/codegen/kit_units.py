"""Kernels of the kit: final IR of a program, and the `.pto` text the reference made from it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pytest_pypto.pypto.backend import BackendType
from pytest_pypto.pypto.backend.handler import handler_for
from pytest_pypto.pypto.codegen import CodegenOptions
from pytest_pypto.pypto.codegen.pto.function import module_text
from pytest_pypto.pypto.codegen.units import kernel_units
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.ir.visitor import IRMutator, defs_of, walk_stmts
from pytest_pypto.pypto.language.parser.modules import loads
from tests.kit import KIT

ARCHITECTURES = {"a2a3sim": BackendType.Ascend910B, "a5sim": BackendType.Ascend950}


def last_dump(folder: Path, platform: str) -> Path:
    """The dump after the last pass; equal dumps are stored once, `index.json` says under which name."""
    passes = folder / platform / "passes"
    index = json.loads((passes / "index.json").read_text(encoding="utf-8"))
    last = index["passes"][-1]
    name = next(f for f, same in index["kept"].items() if last in same or Path(f).stem == last)
    return passes / name


def units_on(platform: str) -> list[tuple[str, str]]:
    """(program, `.pto` file) of every kernel text of the kit for a platform."""
    found = []
    for folder in sorted(p.parent for p in KIT.glob("*/program.py")):
        kernels = folder / platform / "artifact" / "kernels"
        found += [(folder.name, str(p.relative_to(kernels))) for p in sorted(kernels.rglob("*.pto"))]
    return found


def finished_program(name: str, platform: str) -> Program:
    """The program after all passes, as the reference left it."""
    return loads(str(last_dump(KIT / name, platform)))


def our_text(name: str, platform: str, file: str) -> str:
    """What we write for one unit of a finished program."""
    index = json.loads((KIT / "index.json").read_text(encoding="utf-8"))
    planner = index[name].get("compile_options", {}).get("memory_planner")
    program = finished_program(name, platform)
    unit = next(u for u in kernel_units(program) if u.path == file)
    options = CodegenOptions(emit_source_loc=False, baked_addresses=planner is None)
    functions = [with_author_names(f) for f in unit.functions]
    return module_text(functions, handler_for(ARCHITECTURES[platform]), options)


def their_text(name: str, platform: str, file: str) -> str:
    """What the reference wrote, without source places (the dumps do not carry them)."""
    text = (KIT / name / platform / "artifact" / "kernels" / file).read_text(encoding="utf-8")
    return re.sub(r" loc\(\"[^)]*\)", "", text)


class _Names(IRMutator):
    """Printing made names unique with `_1`, `_2`; give variables the names they had before."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def define(self, var: e.Var) -> e.Var:
        made = super().define(var)
        match = re.match(r"^(.*)_(\d+)$", var.name_hint)
        if match is None or match.group(1) not in self.names:
            return made
        fresh: e.Var
        if isinstance(made, e.IterArg):
            fresh = e.IterArg(match.group(1), made.type, made.initValue, made.span)
        else:
            fresh = e.Var(match.group(1), made.type, made.span)
        self.var_map[var] = fresh
        return fresh


def with_author_names(func: Function) -> Function:
    """The function with the variable names it had in memory when the reference wrote its kernel."""
    names = {v.name_hint for s in walk_stmts(func.body) for v in defs_of(s)} | {p.name_hint for p in func.params}
    return _Names(names).visit_function(func)
