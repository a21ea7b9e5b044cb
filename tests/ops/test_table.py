"""The op table against the operator records of the specification, and its own consistency."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_pypto.pypto.ir.enums import MemorySpace
from pytest_pypto.pypto.ir.op_table import KINDS, OMITTED, REQUIRED, OpSpec, all_ops, find_op, get_op, is_op_registered
from tests.kit import SPEC, needs_spec

_FILE = SPEC / "ops.json"
_RECORDS: dict[str, Any] = {r["op"]: r for r in json.loads(_FILE.read_text())["ops"]} if _FILE.is_file() else {}
_OPTIONAL_HERE = {("pld.tile.remote_load", "valid_shape")}
"""Operands that printed programs leave out although the record requires them."""


_WITH_A_BUFFER_OF_ITS_OWN = {"tile.scatter_update"}
"""Listed as in place, but lowered to a selection between the input and what is scattered."""


def _operands(record: dict[str, Any]) -> list[tuple[str, bool]]:
    plain = [p for p in record["params"] if not p["kind"].startswith("kwarg")]
    made = [(p["name"], bool(p.get("optional")) or (record["op"], p["name"]) in _OPTIONAL_HERE) for p in plain]
    return made or ([("deps", True)] if record["op"] == "system.task_dummy" else [])


@needs_spec
def test_there_are_308_operators() -> None:
    assert len(_RECORDS) == 308
    assert set(all_ops()) == set(_RECORDS)


@pytest.mark.parametrize("name", sorted(_RECORDS))
def test_record(name: str) -> None:
    spec, record = find_op(name), _RECORDS[name]
    assert spec is not None
    assert spec.category == record["category"]
    assert [(p.name, p.optional) for p in spec.params] == _operands(record)
    assert {k.name for k in spec.kwargs} == {p["name"] for p in record["params"] if p["kind"].startswith("kwarg")}
    wanted = {k: {s.strip() for s in v.split(",")} for k, v in record.get("input_memory", {}).items()}
    found = {p.name: {s.name for s in p.spaces} for p in spec.params if p.spaces is not None}
    assert {k: v for k, v in found.items() if k in wanted} == wanted
    if record.get("result_aliases_arg") is not None and name not in _WITH_A_BUFFER_OF_ITS_OWN:
        assert spec.inplace == record["result_aliases_arg"]
    core = {"CUBE": "cube", "VECTOR": "vector"}.get(record.get("core_affinity", ""))
    assert core is None or spec.core in (core, None if name == "tile.alloc" else core)


def _ops() -> list[OpSpec]:
    return sorted(all_ops().values(), key=lambda s: s.name)


@pytest.mark.parametrize("spec", _ops(), ids=lambda s: s.name)
def test_record_is_consistent(spec: OpSpec) -> None:
    assert spec.doc, "every operator says what it does"
    assert all(kind in KINDS for p in spec.params for kind in p.kind.split("|"))
    names = [p.name for p in spec.params] + [k.name for k in spec.kwargs]
    assert len(set(names)) == len(names)
    seen_optional = False
    for param in spec.params:
        assert param.optional or not seen_optional, "optional operands come last"
        seen_optional = param.optional
    places = range(-1, len(spec.params))
    assert spec.no_alias <= set(places)
    assert spec.scratch <= set(places)
    for place in (spec.inplace, spec.view_of, spec.space_from):
        assert place is None or place in places
    assert spec.space_kwarg is None or spec.space_kwarg in {k.name for k in spec.kwargs}
    assert sum(x is not None for x in (spec.space, spec.space_from, spec.space_kwarg)) <= 1


def test_keyword_defaults_are_values_or_markers() -> None:
    for spec in _ops():
        for kw in spec.kwargs:
            assert kw.default is REQUIRED or kw.default is OMITTED or kw.kind in ("int", "bool", "str") or kw.default


@pytest.mark.parametrize(
    ("names", "space"),
    [
        ("tile.matmul tile.matmul_acc tile.gemv_bias tile.batch_matmul tile.matmul_mx", MemorySpace.Acc),
        ("tile.add tile.exp tile.row_sum tile.cast tile.sel tile.sort32 tile.concat tile.aiv_shard", MemorySpace.Vec),
        ("tile.aic_gather tile.tpop_from_aiv", MemorySpace.Mat),
        ("tile.store tile.mscatter tensor.create", MemorySpace.DDR),
    ],
)
def test_result_space(names: str, space: MemorySpace) -> None:
    assert {find_op(n).space for n in names.split()} == {space}  # type: ignore[union-attr]


def test_views_inherit_the_space_of_their_source() -> None:
    views = "slice reshape reinterpret_view transpose transpose_view assemble set_validshape"
    assert {find_op(f"tile.{n}").space_from for n in views.split()} == {0}  # type: ignore[union-attr]


def test_buffers_that_must_not_be_shared() -> None:
    """The list of the memory reuse pass."""
    never = (
        "recip rsqrt row_sum row_max row_min row_prod row_argmax col_argmin move extract transpose concat fmod fmods"
    )
    never += " mrgsort_format1 mrgsort_format2 sort32 gather gather_mask gather_compare gatherb mgather"
    never += " fillpad_expand ands ors xors"
    assert [n for n in never.split() if find_op(f"tile.{n}").no_alias != {-1}] == []  # type: ignore[union-attr]
    some = {"sel": {0, 3}, "sels": {0}, "row_expand_mul": {1}, "col_expand_sub": {1}, "row_expand_add": {1, 2}}
    assert {n: find_op(f"tile.{n}").no_alias for n in some} == some  # type: ignore[union-attr]
    assert find_op("tile.add").no_alias == frozenset()  # type: ignore[union-attr]


def test_row_major_operators() -> None:
    """The list of the layout pass: these, and not neg, reductions, expands and minimums."""
    wanted = "add sub mul div maximum minimum rem fmod and or xor shl shr part_add part_mul part_max part_min adds subs"
    wanted += (
        " muls divs fmods maximums lrelu prelu abs exp log sqrt rsqrt recip not cast cmps sel sels full addsc subsc"
    )
    wanted += " gatherb sort32 mscatter"
    found = {s.name.removeprefix("tile.") for s in _ops() if s.row_major_only}
    assert found == set(wanted.split())


def test_unknown_operator() -> None:
    assert find_op("tile.frobnicate") is None
    assert not is_op_registered("tile.frobnicate")
    with pytest.raises(ValueError, match="Operator 'zz' not found in registry"):
        get_op("zz")
