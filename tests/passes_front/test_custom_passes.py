"""Passes made from Python functions, and what findings of the verifiers are numbered by."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto import ir
from pypto.pypto_core import passes

CODE = """
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[4], pl.FP32]) -> pl.Tensor[[4], pl.FP32]:
        y = pl.exp(x)
        return y
"""


@pytest.mark.parametrize("make", [passes.create_program_pass, passes.create_function_pass])
def test_properties_are_those_given(make) -> None:
    ssa, tiles = (passes.IRPropertySet([n]) for n in ("SSAForm", "TileOps2D"))
    made = make(lambda node: node, "Mine", passes.PassProperties(ssa, tiles, ssa))
    assert made.get_name() == "Mine"
    assert made.get_required_properties() == ssa
    assert made.get_produced_properties() == tiles
    assert made.get_invalidated_properties() == ssa
    assert make(lambda node: node).get_required_properties().empty()
    program = pl.parse(CODE)
    assert made(program) is program


def test_a_produced_property_that_does_not_hold_is_found() -> None:
    def broken(program: ir.Program) -> ir.Program:
        main = program["main"]
        first, last = ir.flatten_to_stmts(main.body)
        return program.with_functions([main.with_(body=ir.SeqStmts([first, first, last], main.span))])

    program = pl.parse(CODE)
    made = passes.create_program_pass(
        broken, "Twice", passes.PassProperties(produced=passes.IRPropertySet(["SSAForm"]))
    )
    checks = passes.VerificationInstrument(passes.VerificationMode.AFTER)
    with passes.PassContext([checks]), pytest.raises(passes.VerificationError) as caught:
        made(program)
    assert caught.value.code == passes.SSAErrorType.MULTIPLE_ASSIGNMENT.value


def test_deriving_dependencies_is_off_unless_asked_for() -> None:
    from pypto.ir.pass_manager import OptimizationStrategy, PassManager

    by_hand = passes.auto_derive_task_dependencies()
    (in_pipeline,) = (
        p
        for p in PassManager.get_strategy(OptimizationStrategy.Default, analyze_auto_scopes_for_deps=True).passes
        if p.get_name() == by_hand.get_name()
    )
    assert (by_hand.analyze_auto_scopes, in_pipeline.analyze_auto_scopes) == (False, True)
