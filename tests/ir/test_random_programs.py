"""Properties of printing, loading, comparing and hashing, over random programs."""

from __future__ import annotations

import pypto.language as pl
from hypothesis import HealthCheck, given, settings
from pypto import ir

from .generate import programs

SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@SLOW
@given(programs())
def test_print_and_load(program: ir.Program) -> None:
    text = ir.python_print(program)
    again = pl.parse(text)
    ir.assert_structural_equal(program, again)
    assert ir.structural_hash(program) == ir.structural_hash(again)
    assert ir.python_print(again) == text


@SLOW
@given(programs())
def test_explicit_and_concise_levels(program: ir.Program) -> None:
    ir.assert_structural_equal(program, pl.parse(ir.python_print(program, explicit_layout=True)))
    concise = ir.python_print(program, concise=True)
    compile(concise, "<concise>", "exec")


@SLOW
@given(programs())
def test_clones_and_identity_rewrites(program: ir.Program) -> None:
    assert ir.IRMutator().visit_program(program) is program
    for function in program.functions.values():
        clone = function.with_(body=ir.deep_clone(function.body))
        ir.assert_structural_equal(function, clone)
        assert ir.structural_hash(function) == ir.structural_hash(clone)


@SLOW
@given(programs())
def test_bytes_read_back(program: ir.Program) -> None:
    ir.assert_structural_equal(program, ir.deserialize(ir.serialize(program)))


@settings(SLOW, max_examples=60)
@given(programs(), programs())
def test_equal_programs_have_equal_hashes(one: ir.Program, two: ir.Program) -> None:
    if ir.structural_equal(one, two):
        assert ir.structural_hash(one) == ir.structural_hash(two)
    else:
        assert ir.python_print(one) != ir.python_print(two)
