"""Scopes: device regions, launches, lanes, groups, runtime scopes."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto import ir

from .marked import function, host, printed_body

T = "pl.Tensor[[64, 64], pl.FP32]"
REGION = "level=pl.Level.CORE_GROUP"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        (f"pl.at({REGION})", f"pl.at({REGION})"),
        ("pl.at(pl.Level.CORE_GROUP)", f"pl.at({REGION})"),
        (f'pl.at({REGION}, name_hint="body")', f'pl.at({REGION}, name_hint="body")'),
        (f"pl.at({REGION}, optimizations=[])", f"pl.at({REGION})"),
        (f"pl.at({REGION}, optimizations=[pl.split(pl.SplitMode.NONE)])", f"pl.at({REGION})"),
        (
            f"pl.at({REGION}, optimizations=[pl.optimizations.split(pl.SplitMode.UP_DOWN)])",
            f"pl.at({REGION}, optimizations=[pl.split(pl.SplitMode.UP_DOWN)])",
        ),
        (
            f"pl.at({REGION}, optimizations=[pl.cross_core_slot(slot_num=4), pl.split(pl.SplitMode.LEFT_RIGHT)])",
            f"pl.at({REGION}, optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT), pl.cross_core_slot(slot_num=4)])",
        ),
        (
            f"pl.at({REGION}, windowize=True, allow_early_resolve=True, dumps=[x], no_dep_args=[x])",
            f"pl.at({REGION}, no_dep_args=[x], dumps=[x], allow_early_resolve=True, windowize=True)",
        ),
        (f"pl.at({REGION}, windowize=False)", f"pl.at({REGION})"),
        ("pl.at(level=pl.Level.HOST)", "pl.at(level=pl.Level.HOST)"),
        (
            "pl.at(pl.Level.CHIP_DIE, role=pl.Role.SubWorker, name_hint='hh')",
            'pl.at(level=pl.Level.CHIP_DIE, role=pl.Role.SubWorker, name_hint="hh")',
        ),
        ("pl.cluster()", "pl.cluster()"),
        ("pl.cluster(name_hint='grp')", 'pl.cluster(name_hint="grp")'),
        ("pl.manual_scope()", "pl.scope(mode=pl.ScopeMode.MANUAL)"),
        ("pl.scope(mode=pl.ScopeMode.MANUAL)", "pl.scope(mode=pl.ScopeMode.MANUAL)"),
        ("pl.scope(pl.ScopeMode.MANUAL)", "pl.scope(mode=pl.ScopeMode.MANUAL)"),
    ],
)
def test_with(written: str, printed: str) -> None:
    source = function(f"with {written}:\n    y = pl.exp(x)\nreturn y")
    assert printed_body(source) == [f"with {printed}:", f"    y: {T} = pl.tensor.exp(x)", "return y"]
    func = pl.parse(source)
    assert ir.structural_equal(pl.parse(ir.python_print(func)), func)


def test_deprecated_slot_number_of_split() -> None:
    source = function(
        f"with pl.at({REGION}, optimizations=[pl.split(pl.SplitMode.NONE, slot_num=3)]):\n    y = pl.exp(x)"
    )
    with pytest.warns(DeprecationWarning, match="use pl.cross_core_slot"):
        lines = printed_body(source)
    assert lines[0] == f"with pl.at({REGION}, optimizations=[pl.cross_core_slot(slot_num=3)]):"


def test_auto_scope_only_where_the_author_places_scopes() -> None:
    source = function("with pl.scope():\n    y = pl.exp(x)", decorator="@pl.function(auto_scope=False)")
    assert printed_body(source)[0] == "with pl.scope():"


def test_task_of_a_region() -> None:
    body = (
        f"with pl.at({REGION}) as t:\n    y = pl.exp(x)\n"
        f"with pl.at({REGION}, deps=[t]) as u:\n    z = pl.neg(y)\nreturn z"
    )
    lines = printed_body(function(body))
    assert lines[0] == f"with pl.at({REGION}) as t:"
    assert lines[2] == f"with pl.at({REGION}, deps=[t]) as u:"
    func = pl.parse(function(body))
    assert isinstance(func, ir.Function)
    placeholder, region = ir.flatten_to_stmts(func.body)[:2]
    assert placeholder.value.op.name == "system.task_invalid"
    assert region.attrs["task_id_var"] is placeholder.var


def test_lanes() -> None:
    body = (
        f"with pl.at({REGION}):\n    for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
        "        y = pl.exp(pl.aiv_shard(x))"
    )
    assert printed_body(function(body)) == [
        f"with pl.at({REGION}):",
        "    for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):",
        "        y: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.exp(pl.tensor.aiv_shard(x))",
    ]


def test_lanes_outside_a_region_get_one() -> None:
    body = "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    y = pl.exp(x)"
    assert printed_body(function(body))[:2] == [
        f"with pl.at({REGION}):",
        "    for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):",
    ]


def test_launch_as_loop() -> None:
    func = pl.parse(function("for i in pl.spmd(4, name_hint='strip'):\n    y = pl.slice(x, [16, 64], [i * 16, 0])"))
    assert isinstance(func, ir.Function)
    launch = ir.flatten_to_stmts(func.body)[0]
    region = ir.flatten_to_stmts(launch.body)[0]
    assert (launch.name_hint, region.name_hint) == ("strip_spmd", "strip")
    assert printed_body(ir.python_print(func))[0] == 'for i in pl.spmd(4, name_hint="strip_spmd"):'
    assert ir.structural_equal(pl.parse(ir.python_print(func)), func)


def test_launch_that_asks_for_its_block_is_a_region() -> None:
    body = (
        "with pl.spmd(4, sync_start=True):\n    i = pl.tile.get_block_idx()\n    y = pl.slice(x, [16, 64], [i * 16, 0])"
    )
    assert printed_body(function(body))[0] == "for i in pl.spmd(4, sync_start=True):"


def test_launch_around_one_dispatch() -> None:
    body = "with pl.spmd(k):\n    y = self.step(x, x)\nreturn y"
    assert printed_body(host(body)) == ["with pl.spmd(k):", f"    y: {T} = self.step(x, x)", "return y"]


def test_launch_around_one_region_keeps_it() -> None:
    body = f'with pl.spmd(4):\n    with pl.at({REGION}, name_hint="a"):\n        y = pl.exp(x)'
    source = function(body)
    lines = printed_body(source)
    assert lines[:2] == ["with pl.spmd(4):", f'    with pl.at({REGION}, name_hint="a"):']
    func = pl.parse(source)
    assert ir.structural_equal(pl.parse(ir.python_print(func)), func)


def test_launch_with_dependencies() -> None:
    body = "y, t = pl.submit(self.step, x, x)\nwith pl.spmd(4, deps=[t]) as u:\n    z = self.step(y, y)\nreturn z"
    assert "with pl.spmd(4, deps=[t]) as u:" in printed_body(host(body))


def test_unknown_attributes_of_scopes_survive() -> None:
    func = pl.parse(function(f"with pl.at({REGION}, attrs={{'mine': 3}}):\n    y = pl.exp(x)"))
    text = ir.python_print(func)
    assert f'with pl.at({REGION}, attrs={{"mine": 3}}):' in text
    assert ir.structural_equal(pl.parse(text), func)
