"""Every promise that has a check is broken once, and the check finds it; the unbroken program has no findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import ForKind, FunctionType, MemorySpace
from pytest_pypto.pypto.ir.op_table import create_op_call
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.ir.types import ArrayType, TensorType, TensorView, TileType
from pytest_pypto.pypto.ir.visitor import replace_call
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes.device_ir import op_call
from pytest_pypto.pypto.passes.properties import IRPropertySet
from pytest_pypto.pypto.passes.verification import RULES, PropertyVerifierRegistry
from tests.passes_back.support import PLATFORMS
from tests.passes_back.whole import program, stages

from .test_verification import CASES, at, edit, is_call, kernels, nested

SMALL = program(
    "x: [64, 64] FP32\nc: [1] INT32\no: [64, 64] FP32 Out",
    "n = pl.read(c, [0])\nt = pl.slice(x, [32, 64], [0, 0])\nfor j in pl.range(n):\n"
    "    t = pl.mul(pl.add(t, 1.0), 0.5)\nm = pl.matmul(t, x)\no = pl.assemble(o, m, [0, 0])\n"
    "o = pl.assemble(o, t, [32, 0])",
)
LANES = "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    o = pl.assemble(o, pl.add(x, 1.0), [0, 0])"
HOST = """import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        {head}
            {body}
            o = pl.assemble(o, pl.add(t, 1.0), [0, 0])
        return o
"""
Change = Callable[[s.Stmt], s.Stmt | None]


def assigned(stmt: s.Stmt, name: str) -> s.AssignStmt | None:
    return stmt if is_call(stmt, name) and isinstance(stmt, s.AssignStmt) else None


def called(stmt: s.Stmt, name: str) -> e.Call | None:
    value = stmt.value if isinstance(stmt, s.AssignStmt) else None
    return value if isinstance(value, e.Call) and value.op.name == name else None


def loops(**changes: object) -> Change:
    return lambda x: replace(x, **changes) if isinstance(x, s.ForStmt) else None  # type: ignore[arg-type]


def behind(name: str, *more: s.Stmt) -> Change:
    """Statements behind a call."""
    return lambda x: s.SeqStmts((x, *more)) if is_call(x, name) else None


def nested_call(stmt: s.Stmt) -> s.Stmt | None:
    call = called(stmt, "tile.adds")
    if call is None:
        return None
    inner = create_op_call("tile.neg", [call.args[0]])
    return replace(stmt, value=replace_call(call, args=(inner, *call.args[1:])))  # type: ignore[call-arg]


def nobody(stmt: s.Stmt) -> s.Stmt | None:
    call = called(stmt, "tile.store")
    if call is None:
        return None
    args = (e.Var("nobody", call.args[0].type), *call.args[1:])
    return replace(stmt, value=replace_call(call, args=args))  # type: ignore[call-arg]


def inner_value(node: Program) -> Program:
    """The store takes what the body of the loop defines."""
    found: list[e.Var] = []

    def find(stmt: s.Stmt) -> None:
        one = assigned(stmt, "tile.adds")
        found.extend([] if one is None else [one.var])

    edit(find)(node)

    def use(stmt: s.Stmt) -> s.Stmt | None:
        call = called(stmt, "tile.store")
        if call is None or call.args[0].type.space is not found[-1].type.space:  # type: ignore[attr-defined]
            return None
        return replace(stmt, value=replace_call(call, args=(found[-1], *call.args[1:])))  # type: ignore[call-arg]

    return edit(use)(node)


def region(stmt: s.Stmt) -> s.Stmt | None:
    """A core-group region around what is in one."""
    if not isinstance(stmt, s.InCoreScopeStmt) or isinstance(stmt.body, s.InCoreScopeStmt):
        return None
    return replace(stmt, body=replace(stmt))


def into_int8(stmt: s.Stmt) -> s.Stmt | None:
    call = called(stmt, "tile.store")
    tile = None if call is None else call.args[0].type
    if call is None or not isinstance(tile, TileType) or tile.space is not MemorySpace.Acc:
        return None
    target = call.args[2].type
    assert isinstance(target, TensorType)
    other = e.Var("small", TensorType(target.shape, DataType.INT8))
    return replace(stmt, value=replace_call(call, args=(*call.args[:2], other)))  # type: ignore[call-arg]


def atomic(stmt: s.Stmt) -> s.Stmt | None:
    made = into_int8(stmt)
    call = called(made, "tile.store") if made is not None else None
    if call is None:
        return None
    target = call.args[2].type
    assert isinstance(target, TensorType)
    kind = TensorType(target.shape, DataType.INT64)
    args = (*call.args[:2], e.Var("wide", kind))
    made = replace(made, value=replace_call(call, args=args, kwargs={**call.kwargs, "atomic": 1}))  # type: ignore[call-arg,type-var]
    return made


def three_dims(stmt: s.Stmt) -> s.Stmt | None:
    one = assigned(stmt, "tile.adds")
    if one is None or not isinstance(one.var.type, TileType):
        return None
    kind = TileType((e.index(1), *one.var.type.shape), one.var.type.dtype)
    return replace(one, var=e.Var(one.var.name_hint, kind))


def core(kind: FunctionType) -> Callable[[Program], Program]:
    return kernels(lambda f: f.with_(type=kind) if f.func_type is not FunctionType.Group else f)


def lanes(count: int) -> Change:
    return lambda x: replace(x, count=count) if isinstance(x, s.SplitAivScopeStmt) else None


def unknown_kernel(stmt: s.Stmt) -> s.Stmt | None:
    value = stmt.value if isinstance(stmt, s.AssignStmt) else None
    if isinstance(value, e.Call) and isinstance(value.op, e.GlobalVar):
        return replace(stmt, value=replace_call(value, op=e.GlobalVar("nobody")))  # type: ignore[call-arg]
    return None


def waits(stmt: s.Stmt) -> s.Stmt | None:
    value = stmt.value if isinstance(stmt, s.AssignStmt) else None
    if isinstance(value, e.Call) and isinstance(value.op, e.GlobalVar):
        attrs = {**value.attrs, "manual_dep_edges": [e.Var("task", value.type)]}
        return replace(stmt, value=replace_call(value, attrs=attrs))  # type: ignore[call-arg]
    return None


def value_written(stmt: s.Stmt) -> s.Stmt | None:
    value = stmt.value if isinstance(stmt, s.AssignStmt) else None
    if isinstance(value, e.Call) and isinstance(value.op, e.GlobalVar):
        args = (*value.args[:-1], create_op_call("tensor.neg", [value.args[-1]]))
        return replace(stmt, value=replace_call(value, args=args))  # type: ignore[call-arg]
    return None


def array_parameter(node: Program) -> Program:
    many = e.Var("many", ArrayType(DataType.INT8, e.index(4)))
    return kernels(lambda f: f.with_(params=[*f.pairs, (many, f.pairs[0][1])]))(node)


def output_renamed(node: Program) -> Program:
    """A new tensor takes the name of an output."""
    func = node.get_function("main")
    assert func is not None
    out = func.params[-1]
    made = s.AssignStmt(out, create_op_call("tensor.create", [e.make_tuple([64, 64])], {"dtype": out.type.dtype}))  # type: ignore[attr-defined]
    return node.with_functions([func.with_(body=s.SeqStmts((made, *s.stmts_of(func.body))))])


def all_inline(node: Program) -> Program:
    return node.with_functions([f.with_(type=FunctionType.Inline) for f in node.functions.values()])


def no_strides(node: Program) -> Program:
    def viewed(v: e.Var) -> e.Var:
        assert isinstance(v.type, TensorType)
        view = TensorView(valid_shape=(e.index(1),) * len(v.type.shape))
        return e.Var("seen", TensorType(v.type.shape, v.type.dtype, tensor_view=view))

    return kernels(lambda f: f.with_(params=[(viewed(f.pairs[0][0]), f.pairs[0][1]), *f.pairs[1:]]))(node)


def without(*names: str) -> Change:
    """No statements that call these operators."""

    def change(stmt: s.Stmt) -> s.Stmt | None:
        call = op_call(stmt)
        return s.SeqStmts(()) if call is not None and call.op.name in names else None

    return change


def popped_into(space: MemorySpace) -> Change:
    def change(stmt: s.Stmt) -> s.Stmt | None:
        call = called(stmt, "tile.tpop_from_aic") or called(stmt, "tile.tpop_from_aiv")
        if call is None or not isinstance(call.type, TileType):
            return None
        kind = TileType(call.type.shape, call.type.dtype, None, call.type.tile_view, space)
        made = replace_call(call, type=kind)
        return replace(stmt, var=e.Var("popped", kind), value=made)  # type: ignore[call-arg]

    return change


BREAKS: dict[str, tuple[str, str, Callable[[Program], Program], int]] = {
    "call in a call": ("NoNestedCalls", "LowerCompositeOps", edit(nested_call), 201),
    "break outside": ("BreakContinueValid", "frontend", edit(behind("tensor.read", s.BreakStmt())), 0),
    "break in an unrolled loop": (
        "BreakContinueValid",
        "frontend",
        edit(
            lambda x: (
                replace(x, kind=ForKind.Unroll, body=s.SeqStmts((x.body, s.BreakStmt())))
                if isinstance(x, s.ForStmt)
                else None
            )
        ),
        0,
    ),
    "break left": ("StructuredCtrlFlow", "ConvertTensorToTileOps", edit(behind("tile.adds", s.BreakStmt())), 0),
    "name of nobody": ("UseAfterDef", "ConvertTensorToTileOps", edit(nobody), 401),
    "value of an inner scope": ("SSAForm", "InferTileMemorySpace", inner_value, 6),
    "value of an inner scope, used": ("UseAfterDef", "InferTileMemorySpace", inner_value, 401),
    "pipeline without stages": ("PipelineLoopValid", "ConvertToSSA", edit(loops(kind=ForKind.Pipeline)), 0),
    "stages without pipeline": ("PipelineLoopValid", "ConvertToSSA", edit(loops(attrs={"pipeline_stages": 2})), 0),
    "region in a region": ("NoNestedInCore", "frontend", edit(region), 0),
    "unrolled loop left": ("UnrollResolved", "ConvertToSSA", edit(loops(kind=ForKind.Unroll)), 0),
    "pipeline left": ("PipelineResolved", "AllocateMemoryAddr", edit(loops(kind=ForKind.Pipeline)), 0),
    "inline function left": ("InlineFunctionsEliminated", "ConvertToSSA", all_inline, 0),
    "accumulator into int8": ("AccToGmStoreValid", "InferTileMemorySpace", edit(into_int8), 0),
    "atomic sums of int64": ("AtomicAddDtypeValid", "InferTileMemorySpace", edit(atomic), 0),
    "three dimensions": ("TileOps2D", "InferTileMemorySpace", edit(three_dims), 0),
    "both cores in one": ("MixedKernelExpanded", "ExpandMixedKernel", core(FunctionType.AIV), 0),
    "vectors on the cube core": ("MixedKernelExpanded", "ExpandMixedKernel", core(FunctionType.AIC), 0),
    "no pipes": (
        "MixedKernelExpanded",
        "ExpandMixedKernel",
        edit(without("system.aic_initialize_pipe", "system.aiv_initialize_pipe")),
        0,
    ),
    "popped into the wrong memory": ("MixedKernelExpanded", "ExpandMixedKernel", edit(popped_into(MemorySpace.Acc)), 0),
    "nobody called": ("OrchestrationReferencesResolved", "OutlineIncoreScopes", edit(unknown_kernel), 0),
    "call that waits": ("ManualDepsOnSubmitOnly", "OutlineIncoreScopes", edit(waits), 0),
    "value as an output": ("InOutUseValid", "OutlineIncoreScopes", edit(value_written), 0),
    "array as a parameter": ("ArrayNotEscaped", "OutlineIncoreScopes", array_parameter, 0),
    "output renamed": ("OutParamNotShadowed", "frontend", output_renamed, 0),
    "view without strides": ("TensorViewCanonical", "AllocateMemoryAddr", no_strides, 0),
    "sequence in a sequence": ("NormalizedStmtStructure", "FlattenCallExpr", edit(nested), 0),
}
SCOPES = {
    "chip": ("HierarchyOutlined", "OutlineHierarchyScopes", "with pl.at(level=pl.Level.CHIP):"),
    "cluster": ("ClusterOutlined", "OutlineClusterScopes", "with pl.cluster():"),
    "blocks": ("ClusterOutlined", "OutlineClusterScopes", "for i in pl.spmd(2):"),
}
VECTORS, BOTH = "pl.slice(x, [64, 64], [0, 0])", "pl.matmul(x, x)"
LAUNCHES = [
    ("a2a3sim", VECTORS, "aiv_only", (48,), (1, 24, 47, 49, 96)),
    ("a2a3sim", BOTH, "mix", (24,), (1, 23, 25, 48)),
    ("a2a3sim", BOTH, "aiv_only", (24,), (23, 48)),
    ("a5sim", VECTORS, "aiv_only", (36, 72), (1, 18, 48)),
    ("a5sim", BOTH, "mix", (18, 36), (1, 24, 72)),
]


@pytest.fixture(autouse=True)
def architecture() -> Iterator[None]:
    with selected_backend(PLATFORMS["a2a3sim"]):
        yield


@pytest.fixture(scope="module")
def found() -> dict[str, Program]:
    return stages(SMALL, "a2a3sim")


def codes(prop: str, node: Program) -> set[int]:
    return {d.error_code for d in PropertyVerifierRegistry.verify(IRPropertySet([prop]), node)}


@pytest.mark.parametrize("case", BREAKS)
def test_a_broken_promise_is_found(found: dict[str, Program], case: str) -> None:
    prop, name, change, code = BREAKS[case]
    node = found["frontend"] if name == "frontend" else at(found, name)
    assert codes(prop, node) == set()
    assert code in codes(prop, change(node))


def test_lanes_are_two() -> None:
    text = program("x: [64, 64] FP32\no: [64, 64] FP32 Out", LANES)
    node = parse(text)
    assert codes("AivSplitValid", node) == set()
    assert codes("AivSplitValid", edit(lanes(3))(node)) == {0}


@pytest.mark.parametrize("case", SCOPES)
def test_a_scope_that_is_left_is_found(case: str) -> None:
    prop, name, head = SCOPES[case]
    text = HOST.format(head=head, body="t = pl.slice(x, [64, 64], [0, 0])")
    if case == "chip":  # what stands in it needs a core group
        text = text.replace(
            "            o = pl", "            with pl.at(level=pl.Level.CORE_GROUP):\n                o = pl"
        )
    assert codes(prop, parse(text)) == {0}
    assert codes(prop, at(stages(text, "a2a3sim"), name)) == set()


@pytest.mark.parametrize(("platform", "value", "cores", "full", "wrong"), LAUNCHES)
def test_a_hard_barrier_needs_all_cores(
    platform: str, value: str, cores: str, full: tuple[int, ...], wrong: tuple[int, ...]
) -> None:
    barrier = f"pl.system.syncall(core_type='{cores}')\n            t = {value}"

    def found(head: str, body: str = barrier) -> set[int]:
        node = at(stages(HOST.format(head=head, body=body), platform), "ExpandMixedKernel")
        with selected_backend(PLATFORMS[platform]):
            return codes("HardSyncallOccupancyValid", node)

    assert [found(f"for i in pl.spmd({n}):") for n in full] == [set()] * len(full)
    assert [found(f"for i in pl.spmd({n}):") for n in wrong] == [{0}] * len(wrong)
    assert found("with pl.at(level=pl.Level.CORE_GROUP):") == {0}
    assert found("for i in pl.spmd(2):", f"t = {value}") == set()


def test_every_check_has_a_broken_program() -> None:
    """A check is only worth something when there is a program that it refuses."""
    broken = {c[0] for c in (*BREAKS.values(), *CASES.values())} | {"AivSplitValid"}
    broken |= {c[0] for c in SCOPES.values()} | {"HardSyncallOccupancyValid"}
    assert {p.name for p in RULES} <= broken
