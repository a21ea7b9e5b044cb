"""Python names for IR names."""

from __future__ import annotations

import keyword

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytest_pypto.pypto.debug.names import NameTable, base_name
from pytest_pypto.pypto.debug.torch_codegen import TorchCodegen
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.ir.span import Span

from .build import F32, Body, code_of, function, invoke, run, tensor, tile


@pytest.mark.parametrize(
    ("hint", "name"),
    [("x__y", "x_y"), ("0abc", "v_0abc"), ("for", "for_v"), ("a.b-c", "a_b_c"), ("", "v"), ("__", "v"), ("out__ssa_v3", "out_ssa_v3"), ("acc__iter_v1", "acc_iter_v1")],  # noqa: E501
)  # fmt: skip
def test_hints_become_identifiers(hint: str, name: str) -> None:
    assert TorchCodegen()._unique_name(hint) == name


def test_repeated_hints_are_counted() -> None:
    gen = TorchCodegen()
    assert [gen._unique_name("a") for _ in range(3)] == ["a", "a_1", "a_2"]


def test_counted_names_do_not_collide_with_given_ones() -> None:
    gen = TorchCodegen()
    assert len({gen._unique_name(h) for h in ("x", "x", "x_1", "x__1", "x", "x_1_1")}) == 6


@pytest.mark.parametrize(
    "hint", ["torch", "range", "int", "min", "max", "len", "_tile_load", "_cross_core_rt", "threading"]
)
def test_what_a_script_needs_is_never_given_out(hint: str) -> None:
    assert TorchCodegen()._unique_name(hint) != hint


@given(st.lists(st.text(max_size=12), max_size=30))
def test_names_are_valid_and_distinct(hints: list[str]) -> None:
    table = NameTable(["main", "kernel"])
    names = [table.unique(h) for h in hints]
    assert len(set(names)) == len(names)
    assert all(n.isidentifier() and n.isascii() and not keyword.iskeyword(n) for n in names)
    assert not {"main", "kernel"} & set(names)


def test_a_variable_is_known_by_its_id_alone() -> None:
    key = TorchCodegen._var_semantic_key
    place = Span("f.py", 987654321, 876543210)
    one, two = e.Var("a", tensor((2,)), place), e.Var("a", tensor((2,)), place)
    assert key(one) == key(one)
    assert key(one) != key(two)
    assert one.unique_id in key(one)
    assert not {"f.py", 987654321, 876543210} & set(key(one))


def test_names_start_anew_in_every_function() -> None:
    def body(b: Body, a: e.Var) -> None:
        b.ret(b.op("t", "tensor.neg", a))

    fns = [function(n, [("a", tensor((2,)))], body) for n in ("f", "g")]
    text = code_of(Program(fns, "P"))
    assert text.count("t = torch.neg(a)") == 2


@pytest.mark.parametrize("hint", ["torch", "range", "min", "_tile_load", "f", "lambda", "print"])
def test_parameters_may_have_any_name(hint: str) -> None:
    """A name that the body needs is not shadowed."""

    def body(b: Body, x: e.Var, n: e.Var) -> None:
        t = b.op("t", "tile.load", x, (0, 0), (2, 2), (2, 2))
        u = b.op("u", "tile.exp", t)
        b.ret(
            b.op(
                "r",
                "tile.load",
                x,
                (e.Min(n, e.index(0), e.INDEX if hasattr(e, "INDEX") else n.type.dtype), 0),
                (2, 2),
                (2, 2),
            ),
            u,
        )

    f = function("f", [(hint, tensor((2, 2))), ("n", e.index(0).type)], body)
    x = torch.ones(2, 2)
    first, second = run(f, x, 0)
    assert torch.equal(first, x)
    assert torch.equal(second, x.exp())


def test_five_awkward_names_stay_distinct() -> None:
    hints = ["lambda", "a.b", "1x", "a__b", "a_b"]

    def body(b: Body, *params: e.Var) -> None:
        total = params[0]
        for k, p in enumerate(params[1:]):
            total = b.op(hints[k], "tile.add", total, p)
        b.ret(total)

    f = function("f", [(h, tile((1, 1))) for h in hints], body)
    assert run(f, *[torch.full((1, 1), float(2**k)) for k in range(5)]).item() == 31


def test_three_variables_of_colliding_hints() -> None:
    def body(b: Body, *xs: e.Var) -> None:
        copies = [b.op(h, "tile.muls", x, 1.0) for h, x in zip(("x", "x", "x_1"), xs, strict=True)]
        b.ret(b.op("s", "tile.add", b.op("p", "tile.add", copies[0], copies[1]), copies[2]))

    f = function("f", [(f"in{k}", tile((1, 1))) for k in range(3)], body)
    assert run(f, *[torch.full((1, 1), v) for v in (1.0, 2.0, 4.0)]).item() == 7


def test_a_variable_may_be_called_like_a_function_of_the_program() -> None:
    def inner(b: Body, a: e.Var) -> None:
        b.ret(b.op("t", "tensor.neg", a))

    def outer(b: Body, a: e.Var) -> None:
        k = b.let("helper", invoke("helper", [a], a.type))
        b.ret(b.let("r", invoke("helper", [k], a.type)))

    ty = tensor((2,), F32)
    p = Program([function("helper", [("a", ty)], inner), function("main", [("a", ty)], outer)], "P")
    assert run(p, torch.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "base"),
    [("acc__ssa_v3", "acc"), ("acc__iter_v1", "acc"), ("acc__rv_v2", "acc"), ("i__idx_v0", "i"), ("acc", "acc"), ("t__tmp_v0_1", "t")],  # noqa: E501
)  # fmt: skip
def test_author_names(name: str, base: str) -> None:
    assert base_name(name) == base
