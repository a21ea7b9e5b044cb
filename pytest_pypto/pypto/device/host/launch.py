"""From a call of a kernel, group or SPMD function to a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...ir import expr as e
from ...ir.enums import ArgDirection, FunctionType
from ...ir.program import Function
from ...ir.stmt import AssignStmt, EvalStmt
from ...ir.types import TensorType
from ...ir.visitor import walk_stmts
from ..machine.bind import BindError
from ..mixed.task import Launch
from .graph import Task
from .program import KERNELS, KernelShape, result_params
from .values import HostTensor

if TYPE_CHECKING:
    from .interp import Interpreter


_MOST_CALLS = 8


@dataclass
class Member:
    """One kernel of a task with its arguments, in the order of its own parameters."""

    func: Function
    args: list[Any]


def members(it: Interpreter, func: Function, args: Sequence[Any], depth: int = 0) -> list[Member]:
    """The kernels that a call of `func` runs: itself, or what the body of a group or SPMD function calls."""
    if func.func_type in KERNELS:
        return [Member(func, list(args))]
    if len(args) != len(func.params):
        it.fail(f"{func.name} takes {len(func.params)} argument(s), the call has {len(args)}")
    if depth >= _MOST_CALLS:
        it.fail(f"groups are nested deeper than {_MOST_CALLS}; does {func.name} call itself?")
    values = dict(zip(func.params, args, strict=True))
    found: list[Member] = []
    for stmt in walk_stmts(func.body):
        call = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
        if isinstance(call, e.Call) and isinstance(call.op, e.GlobalVar):
            inner = it.program.functions.get(call.op.name)
            if inner is None:
                it.fail(f"{func.name} calls {call.op.name!r}, which the program does not define")
            found += members(it, inner, [_inner_value(it, a, values) for a in call.args], depth + 1)
        if isinstance(stmt, AssignStmt) and isinstance(call, e.Call):
            values[stmt.var] = _result_value(it, call, values)
    return found or _by_name(it, func, args)


def _inner_value(it: Interpreter, x: e.Expr, values: dict[e.Var, Any]) -> Any:
    if isinstance(x, e.Var):
        if x not in values:
            it.fail(f"{x.name_hint!r} has no value in the body of a group")
        return values[x]
    from .scalars import evaluate

    try:
        return evaluate(x, lambda y: _inner_value(it, y, values))
    except BindError as exc:
        it.fail(str(exc))


def _result_value(it: Interpreter, call: e.Call, values: dict[e.Var, Any]) -> Any:
    func = it.program.functions.get(call.op.name)
    if func is None:
        return None
    places = result_params(func)
    found = [_inner_value(it, call.args[i], values) for i in places]
    return found[0] if len(found) == 1 else tuple(found)


def _by_name(it: Interpreter, func: Function, args: Sequence[Any]) -> list[Member]:
    names = (f"{func.name}_aic", f"{func.name}_aiv")
    found = [it.program.functions[n] for n in names if n in it.program.functions]
    if not found:
        it.fail(f"{func.name} has no kernels: its body calls none, and there are no {' and '.join(names)}")
    return [Member(f, list(args)) for f in found]


def launch(
    it: Interpreter,
    func: Function,
    node: Any,
    args: list[Any],
    directions: Sequence[ArgDirection],
    blocks: int | None,
    deps: Sequence[int],
) -> tuple[Any, int]:
    """Submit one task; gives the call's result and the task's number."""
    session = it.session
    parts = members(it, func, args)
    cores: dict[str, Member] = {}
    for part in parts:
        core = "aic" if part.func.func_type is FunctionType.AIC else "aiv"
        if core in cores:
            it.fail(f"{func.name} runs two {core} kernels, {cores[core].func.name} and {part.func.name}, in one task")
        cores[core] = part
        if part.func.name not in session.artifact.kernels:
            known = ", ".join(sorted(session.artifact.kernels)) or "none"
            it.fail(f"launches kernel {part.func.name!r}, which no .pto file defines; defined are {known}")
    number = len(session.graph.tasks)
    site = it.site(node, func.name)
    made = Launch(
        number,
        func.name,
        cores["aic"].func.name if "aic" in cores else None,
        cores["aiv"].func.name if "aiv" in cores else None,
        lanes(it, func, cores),
        blocks or 1,
        {c: _tensors(it, m) for c, m in cores.items()},
        {c: _scalars(it, m) for c, m in cores.items()},
        site,
    )
    pairs = [
        (value.arg, direction)
        for value, direction in zip(args, directions, strict=False)
        if isinstance(value, HostTensor)
    ]
    task = Task(number, func.name, pairs, lambda: session.execute(made), launch=made)
    task.info["labels"] = [p.name_hint for p in func.params if isinstance(p.type, TensorType)]
    task.info["dump"] = _dumped(it, node)
    task.info["scalars"] = [v for v in args if not isinstance(v, HostTensor)]
    session.submit(task, deps, site)
    results = results_of(it, func, args, number)
    return (None if not results else results[0] if len(results) == 1 else tuple(results)), number


def results_of(it: Interpreter, func: Function, args: Sequence[Any], task: int | None) -> list[Any]:
    """What a call of `func` gives: the arguments that its results are."""
    return [args[i].by(task) if isinstance(args[i], HostTensor) else args[i] for i in result_params(func)]


def _dumped(it: Interpreter, node: Any) -> list[int]:
    """Buffers that the program marks for the argument dump."""
    marked = [*(node.attrs.get("dump_vars") or ()), *(it.func.attrs.get("dump_vars") or ())]
    found = []
    for v in marked:
        value = it.env.get(v) if isinstance(v, e.Var) else None
        if isinstance(value, HostTensor):
            found.append(value.root.id)
    return found


def lanes(it: Interpreter, func: Function, cores: dict[str, Member]) -> int:
    """Vector lanes of a task.

    Mixed tasks run both lanes where the platform replays them, else when something says that the lanes differ: a split,
    a lane region, or a kernel that asks for its lane. Vector tasks run one lane unless something says so.
    """
    vector = cores.get("aiv")
    if vector is None:
        return 0
    if "aic" in cores and it.session.run.platform.replay_lanes:
        return 2
    marked = [func, *(m.func for m in cores.values())]
    if any(f.attrs.get("dual_aiv_dispatch") or f.attrs.get("split_aiv") for f in marked):
        return 2
    if "aic" in cores and any(f.split is not None for f in marked):
        return 2
    return 2 if it.session.takes_lane(vector.func.name) else 1


def _tensors(it: Interpreter, m: Member) -> list[Any]:
    shape: KernelShape = it.program.shape(m.func.name)
    if len(m.args) != len(m.func.params):
        it.fail(f"kernel {m.func.name} takes {len(m.func.params)} argument(s), the call has {len(m.args)}")
    found = []
    for i in shape.tensors:
        value = m.args[i]
        if not isinstance(value, HostTensor):
            it.fail(f"argument {i} of kernel {m.func.name} must be a tensor, it is {value!r}")
        found.append(value.arg)
    return found


def _scalars(it: Interpreter, m: Member) -> list[Any]:
    from .interp import argument

    shape: KernelShape = it.program.shape(m.func.name)
    try:
        found = [argument(m.args[i], m.func.params[i]) for i in shape.scalars]
    except BindError as exc:
        it.fail(f"kernel {m.func.name}: {exc}")
    wanted = it.session.scalar_count(m.func.name)
    extra = wanted - len(found)
    if extra < 0 or (extra and extra > len(shape.symbols)):
        it.fail(
            f"kernel {m.func.name} takes {wanted} scalar(s), the call has {len(found)} and {len(shape.symbols)} extents"
        )
    symbols = shape.symbols if extra == len(shape.symbols) else it.session.used_symbols(m.func, extra)
    return found + [_extent(it, m, s) for s in symbols[:extra]]


def _extent(it: Interpreter, m: Member, symbol: e.Var) -> int:
    """The run-time value of a symbol in a kernel's tensor types."""
    for param, value in zip(m.func.params, m.args, strict=True):
        if not isinstance(param.type, TensorType) or not isinstance(value, HostTensor):
            continue
        for dim, n in zip(param.type.shape, value.shape, strict=True):
            if dim is symbol or (isinstance(dim, e.Var) and dim.name_hint == symbol.name_hint):
                return n
        strides = param.type.tensor_view.stride if param.type.tensor_view is not None else ()
        for dim, n in zip(strides, value.arg.strides, strict=False):
            if dim is symbol:
                return n
    if symbol.name_hint in it.symbols:
        return it.symbols[symbol.name_hint]
    it.fail(f"extent {symbol.name_hint!r} of kernel {m.func.name} is no extent of an argument")
