"""Verifiers in pairs: a program with one fault is found out, with property, code and place; its twin is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.enums import MemorySpace
from pytest_pypto.pypto.ir.op_table import create_op_call
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.ir.types import TileType
from pytest_pypto.pypto.ir.visitor import IRMutator, replace_call
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes.base import create_program_pass
from pytest_pypto.pypto.passes.context import PassContext, VerificationLevel
from pytest_pypto.pypto.passes.convert_to_ssa import ConvertToSSA
from pytest_pypto.pypto.passes.instruments import VerificationInstrument, VerificationMode
from pytest_pypto.pypto.passes.manager import OptimizationStrategy, PassManager, PassPipeline
from pytest_pypto.pypto.passes.properties import IRProperty, IRPropertySet
from pytest_pypto.pypto.passes.verification import (
    PropertyVerifierRegistry,
    VerificationError,
    run_verifier,
    verify_roundtrip,
)
from tests.passes_back.support import PLATFORMS
from tests.passes_back.whole import stages

SOURCE = """import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        for i in pl.range(2):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.slice(x, [32, 64], [i * 32, 0])
                for j in pl.range(n):
                    t = pl.mul(pl.add(t, 1.0), 0.5)
                o = pl.assemble(o, t, [i * 32, 0])
        return o
"""
Break = Callable[[Program], Program]


@pytest.fixture(autouse=True)
def architecture() -> Iterator[None]:
    with selected_backend(PLATFORMS["a2a3sim"]):
        yield


@pytest.fixture(scope="module")
def found() -> dict[str, Program]:
    return stages(SOURCE, "a2a3sim")


class _Edit(IRMutator):
    """Changes every statement for which `edit` gives another one."""

    def __init__(self, edit: Callable[[s.Stmt], s.Stmt | None]) -> None:
        super().__init__()
        self.edit = edit

    def visit_stmt(self, stmt: s.Stmt) -> s.Stmt:
        made = super().visit_stmt(stmt)
        changed = self.edit(made)
        if isinstance(made, s.AssignStmt) and isinstance(changed, s.AssignStmt):
            self.var_map[made.var] = changed.var
        return made if changed is None else changed


def edit(change: Callable[[s.Stmt], s.Stmt | None]) -> Break:
    return lambda program: _Edit(change).visit_program(program)


def kernels(change: Callable[[Function], Function]) -> Break:
    return lambda p: p.with_functions([f if f.name == "main" else change(f) for f in p.functions.values()])


def host(change: Callable[[Function], Function]) -> Break:
    return lambda p: p.with_functions([change(f) if f.name == "main" else f for f in p.functions.values()])


def call_of(stmt: s.Stmt, name: str) -> e.Call | None:
    value = stmt.value if isinstance(stmt, s.AssignStmt) else None
    return value if isinstance(value, e.Call) and value.op.name == name else None


def is_call(stmt: s.Stmt, name: str) -> bool:
    return call_of(stmt, name) is not None


def twice(stmt: s.Stmt) -> s.Stmt | None:
    return s.SeqStmts((stmt, stmt)) if is_call(stmt, "tile.load") else None


def nested(stmt: s.Stmt) -> s.Stmt | None:
    if not isinstance(stmt, s.SeqStmts) or any(isinstance(x, s.SeqStmts) for x in stmt.stmts):
        return None
    return s.SeqStmts((s.SeqStmts(stmt.stmts, stmt.span),), stmt.span)


def yield_first(stmt: s.Stmt) -> s.Stmt | None:
    if not isinstance(stmt, s.SeqStmts) or not isinstance(stmt.stmts[-1], s.YieldStmt) or len(stmt.stmts) < 2:
        return None
    return s.SeqStmts((stmt.stmts[-1], *stmt.stmts[:-1]), stmt.span)


def fewer_results(stmt: s.Stmt) -> s.Stmt | None:
    if isinstance(stmt, s.ForStmt) and stmt.return_vars:
        return replace(stmt, return_vars=())
    return None


def other_dtype(stmt: s.Stmt) -> s.Stmt | None:
    if is_call(stmt, "tile.adds") and isinstance(stmt, s.AssignStmt) and isinstance(stmt.var.type, TileType):
        from pytest_pypto.pypto.ir.dtypes import INT32

        type_ = stmt.var.type
        made = TileType(type_.shape, INT32, type_.memref, type_.tile_view, type_.space)
        return replace(stmt, var=e.Var(stmt.var.name_hint, made, stmt.var.span))
    return None


def in_space(space: MemorySpace | None, op: str = "tile.load") -> Callable[[s.Stmt], s.Stmt | None]:
    def change(stmt: s.Stmt) -> s.Stmt | None:
        if not is_call(stmt, op) or not isinstance(stmt, s.AssignStmt) or not isinstance(stmt.var.type, TileType):
            return None
        type_ = stmt.var.type
        made = TileType(type_.shape, type_.dtype, type_.memref, type_.tile_view, space)
        return replace(stmt, var=e.Var(stmt.var.name_hint, made, stmt.var.span))

    return change


def moved_from(here: MemorySpace, there: MemorySpace) -> Callable[[s.Stmt], s.Stmt | None]:
    """Loads into one memory, followed by a move into another."""
    load = in_space(here)

    def change(stmt: s.Stmt) -> s.Stmt | None:
        made = load(stmt)
        if not isinstance(made, s.AssignStmt):
            return None
        move = create_op_call("tile.move", [made.var], {"target_memory": there})
        return s.SeqStmts((made, s.AssignStmt(e.Var("moved", move.type), move)))

    return change


def no_attr(name: str) -> Callable[[s.Stmt], s.Stmt | None]:
    def change(stmt: s.Stmt) -> s.Stmt | None:
        value = getattr(stmt, "value", None)
        if isinstance(value, e.Call) and name in value.attrs:
            attrs = {k: v for k, v in value.attrs.items() if k != name}
            return replace(stmt, value=replace_call(value, attrs=attrs))  # type: ignore[call-arg]
        if name in getattr(stmt, "attrs", {}):
            attrs = {k: v for k, v in stmt.attrs.items() if k != name}  # type: ignore[attr-defined]
            return replace(stmt, attrs=attrs)  # type: ignore[call-arg]
        return None

    return change


def beyond(stmt: s.Stmt) -> s.Stmt | None:
    """A tile at the end of its memory."""
    if not is_call(stmt, "tile.load") or not isinstance(stmt, s.AssignStmt) or not isinstance(stmt.var.type, TileType):
        return None
    type_, old = stmt.var.type, stmt.var.type.memref
    assert old is not None
    memref = e.MemRef(old.base_, e.index(188416 - 32), old.size_)
    made = TileType(type_.shape, type_.dtype, memref, type_.tile_view, type_.space)
    return replace(stmt, var=e.Var(stmt.var.name_hint, made, stmt.var.span))


def tensor_op(stmt: s.Stmt) -> s.Stmt | None:
    """A tensor operator in a kernel."""
    if is_call(stmt, "tile.load") and isinstance(stmt, s.AssignStmt) and isinstance(stmt.value, e.Call):
        made = create_op_call("tensor.exp", [stmt.value.args[0]])
        return s.SeqStmts((s.AssignStmt(e.Var("u", made.type), made), stmt))
    return None


def returns_last_version(func: Function) -> Function:
    """Return the result of the store in place of the parameter."""
    stores = [x for x in s.stmts_of(func.body) if is_call(x, "tile.store")]
    last = s.stmts_of(func.body)[-1]
    assert isinstance(last, s.ReturnStmt)
    assert isinstance(stores[-1], s.AssignStmt)
    stmts = (*s.stmts_of(func.body)[:-1], replace(last, value=(stores[-1].var,)))
    return func.with_(body=s.SeqStmts(stmts, func.body.span))


CASES: dict[str, tuple[str, str, Break, int]] = {
    "assigned twice": ("SSAForm", "ConvertTensorToTileOps", edit(twice), 1),
    "loop results": ("SSAForm", "ConvertToSSA", edit(fewer_results), 4),
    "yield in the middle": ("SSAForm", "ConvertToSSA", edit(yield_first), 7),
    "element type": ("TypeChecked", "ConvertTensorToTileOps", edit(other_dtype), 102),
    "nested sequence": ("NoRedundantBlocks", "ConvertTensorToTileOps", edit(nested), 0),
    "region left": ("SplitIncoreOrch", "OutlineIncoreScopes", lambda p: parse(SOURCE), 0),
    "tensor operator": ("IncoreTileOps", "ConvertTensorToTileOps", edit(tensor_op), 0),
    "no memory space": ("TileMemoryInferred", "InferTileMemorySpace", edit(in_space(None)), 0),
    "wrong memory space": (
        "TileMemoryInferred",
        "InferTileMemorySpace",
        edit(in_space(MemorySpace.Acc, "tile.adds")),
        0,
    ),
    "move where no copy leads": (
        "TileMemoryInferred",
        "InferTileMemorySpace",
        edit(moved_from(MemorySpace.Left, MemorySpace.Vec)),
        0,
    ),
    "move without its middle": (
        "TileMemoryInferred",
        "InferTileMemorySpace",
        edit(moved_from(MemorySpace.Acc, MemorySpace.Left)),
        0,
    ),
    "space of a carry": ("TileTypeCoherence", "InferTileMemorySpace", edit(in_space(MemorySpace.Mat, "tile.muls")), 0),
    "space of the value": ("TileTypeCoherence", "InferTileMemorySpace", edit(in_space(MemorySpace.Mat)), 0),
    "beyond the memory": ("AllocatedMemoryAddr", "AllocateMemoryAddr", edit(beyond), 0),
    "version returned": ("ReturnParamsExplicit", "NormalizeReturnOrder", kernels(returns_last_version), 0),
    "no directions": ("CallDirectionsResolved", "DeriveCallDirections", edit(no_attr("arg_directions")), 0),
    "no scopes": (
        "RuntimeScopesMaterialized",
        "MaterializeRuntimeScopes",
        host(lambda f: f.with_(attrs={k: v for k, v in f.attrs.items() if k != "auto_scope"})),
        0,
    ),
    "no class of carry": ("IterArgCarryClassified", "ClassifyIterArgCarry", edit(no_attr("iter_arg_rebind_0")), 0),
}


def at(found: dict[str, Program], name: str) -> Program:
    """The program after a pass; the one before when the pass changed nothing."""
    with selected_backend(PLATFORMS["a2a3sim"]):
        order = ["frontend", *PassManager.get_strategy(OptimizationStrategy.Default).get_pass_names()]
    return next(found[n] for n in reversed(order[: order.index(name) + 1]) if n in found)


@pytest.mark.parametrize("case", CASES)
def test_a_broken_promise_is_found(found: dict[str, Program], case: str) -> None:
    prop, name, change, code = CASES[case]
    program = at(found, name)
    wanted = IRPropertySet([prop])
    assert PropertyVerifierRegistry.verify(wanted, program) == []
    broken = create_program_pass(change, f"Break{name}")(program)
    with pytest.raises(VerificationError) as caught:
        PropertyVerifierRegistry.verify_or_throw(wanted, broken)
    assert caught.value.property == prop
    assert code in {d.error_code for d in caught.value.diagnostics}
    assert prop in str(caught.value)


def test_a_pipeline_names_the_pass_that_broke_the_promise() -> None:
    class Bad(ConvertToSSA):
        name = "Bad"

        def apply(self, program: Program) -> Program:
            return edit(fewer_results)(super().apply(program))

    with pytest.raises(VerificationError) as caught:
        PassPipeline([Bad()]).run(parse(SOURCE, filename="my.py"))
    assert caught.value.pass_name == "Bad"
    assert caught.value.property == "SSAForm"
    assert str(caught.value.span).startswith("my.py:")
    assert "failed after Bad: SSAForm" in str(caught.value)
    with PassContext(verification_level=VerificationLevel.NONE):
        PassPipeline([Bad()]).run(parse(SOURCE))


def test_instruments_check_what_a_pass_requires() -> None:
    class Needs(ConvertToSSA):
        name = "Needs"
        requires = frozenset({"SSAForm"})

    checks = VerificationInstrument(VerificationMode.BEFORE)
    with PassContext([checks]):
        Needs()(ConvertToSSA()(parse(SOURCE)))
        with pytest.raises(VerificationError, match="before Needs: SSAForm"):
            Needs()(
                parse(SOURCE.replace("t = pl.slice", "t = pl.slice(x, [32, 64], [0, 0])\n                t = pl.slice"))
            )


def test_the_round_trip_is_checked_after_every_pass() -> None:
    with PassContext(verification_level=VerificationLevel.ROUNDTRIP):
        PassManager.get_strategy(OptimizationStrategy.Default).run_passes(parse(SOURCE))


def test_a_program_that_prints_as_another_is_found(found: dict[str, Program]) -> None:
    def nameless(stmt: s.Stmt) -> s.Stmt | None:
        call = call_of(stmt, "tile.store")
        if call is None:
            return None
        args = (e.Var("nobody", call.args[0].type), *call.args[1:])
        return replace(stmt, value=replace_call(call, args=args))  # type: ignore[call-arg]

    def unprintable(stmt: s.Stmt) -> s.Stmt | None:
        call = call_of(stmt, "tile.store")
        if call is None:
            return None
        return replace(stmt, value=replace_call(call, kwargs={**call.kwargs, "atomic": 7}))  # type: ignore[call-arg]

    program = at(found, "ConvertTensorToTileOps")
    verify_roundtrip(program, "Fine")
    with pytest.raises(VerificationError, match=r"failed after Odd: Roundtrip[\s\S]*does not load"):
        verify_roundtrip(edit(nameless)(program), "Odd")
    with pytest.raises(VerificationError, match=r"failed after Odd: Roundtrip[\s\S]*cannot be printed"):
        verify_roundtrip(edit(unprintable)(program), "Odd")


def test_a_verifier_as_a_pass(found: dict[str, Program]) -> None:
    program = at(found, "ConvertToSSA")
    assert run_verifier(IRPropertySet([IRProperty.SSAForm]))(program) is program
    with pytest.raises(VerificationError, match="after RunVerifier: SSAForm"):
        run_verifier()(edit(fewer_results)(program))


def test_reports() -> None:
    program = edit(fewer_results)(ConvertToSSA()(parse(SOURCE)))
    found = PropertyVerifierRegistry.verify(IRPropertySet([IRProperty.SSAForm]), program)
    text = PropertyVerifierRegistry.generate_report(found)
    assert text.startswith(f"IR verification found {len(found)} violation(s):")
    assert "no violations" in PropertyVerifierRegistry.generate_report([])
