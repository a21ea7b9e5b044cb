"""Groups of a cube and a vector kernel that run together, and kernels that may have to wait."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from ...ir import expr as e
from ...ir.enums import FunctionType
from ...ir.program import Function
from ...ir.stmt import SplitAivScopeStmt, SpmdScopeStmt
from ...ir.types import ShapedType
from ...ir.visitor import calls_in, walk_stmts
from ..ops.system import split_mode_to_int
from .bounds import core_num_of
from .flow import Flow
from .storage import callee_of

TRANSFERS = ("tile.tpush_to_aiv", "tile.tpush_to_aic", "tile.tpop_from_aic", "tile.tpop_from_aiv")
_WAITING = (*TRANSFERS, "system.syncall")
_DEVICE = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV, FunctionType.Spmd, FunctionType.Inline)


@dataclass(frozen=True)
class Pair:
    """A group: the functions of its cube and vector kernel and what the scheduler has to know.

    `direct` means both kernels get the group's arguments as they are; otherwise `calls` are the calls in the group's
    body, from which adapters are written.
    """

    group: str
    aic: str
    aiv: str
    split: int
    dual: bool
    logical: bool
    result: str
    mixed: bool = False
    direct: bool = True
    calls: tuple[e.Call, ...] = ()

    def meta(self) -> dict[str, str | int | bool]:
        """The entry of `_GROUP_META`; further keys are there only when they say something."""
        aic, aiv = (self.aic, self.aiv) if self.direct else (f"_{self.group}_aic", f"_{self.group}_aiv")
        out: dict[str, str | int | bool] = {"aic": aic, "aiv": aiv, "split": self.split, "dual_aiv_dispatch": self.dual}
        if self.logical:
            out["logical_vector_core"] = True
        if self.mixed:
            out["mixed_split"] = True
        if self.result != "aiv":
            out["result"] = self.result
        return out


def pairs_of(functions: Mapping[str, Function]) -> dict[str, Pair]:
    """The groups of a program, by name: through the calls in the group's body, else by the names of its kernels."""
    found = {}
    for name, function in functions.items():
        if function.func_type is FunctionType.Group:
            pair = _by_calls(function, functions) or _by_names(function, functions)
            if pair is not None:
                found[name] = pair
    return found


def _by_calls(group: Function, functions: Mapping[str, Function]) -> Pair | None:
    calls = [c for c in calls_in(group.body) if isinstance(c, e.Call) and callee_of(c, functions) is not None]
    kinds = {kind: [c for c in calls if functions[c.op.name].func_type is kind] for kind in _KERNELS}
    cube, vector = kinds[FunctionType.AIC], kinds[FunctionType.AIV]
    if len(calls) != 2 or len(cube) != 1 or len(vector) != 1 or any(core_num_of(c) for c in calls):
        return None
    direct = all(len(c.args) == len(group.params) and _are(c.args, group.params) for c in calls)
    returned = _returned_call(group)
    result = "aic" if returned == cube[0].op.name and not functions[vector[0].op.name].return_types else "aiv"
    return _pair(group, functions[cube[0].op.name], functions[vector[0].op.name], result, direct, (cube[0], vector[0]))


_KERNELS = (FunctionType.AIC, FunctionType.AIV)


def _are(args: tuple[e.Expr, ...], params: tuple[e.Var, ...]) -> bool:
    return all(a is p for a, p in zip(args, params, strict=True))


def _returned_call(group: Function) -> str | None:
    """The kernel whose result the group returns."""
    from ...ir.stmt import AssignStmt, ReturnStmt

    made = {s.var: s.value for s in walk_stmts(group.body) if isinstance(s, AssignStmt)}
    for stmt in walk_stmts(group.body):
        if isinstance(stmt, ReturnStmt) and len(stmt.value) == 1:
            value = stmt.value[0]
            call = made.get(value) if isinstance(value, e.Var) else value
            return call.op.name if isinstance(call, e.Call) else None
    return None


def _by_names(group: Function, functions: Mapping[str, Function]) -> Pair | None:
    aic, aiv = functions.get(f"{group.name}_aic"), functions.get(f"{group.name}_aiv")
    return None if aic is None or aiv is None else _pair(group, aic, aiv, "aiv")


def _pair(
    group: Function, aic: Function, aiv: Function, result: str, direct: bool = True, calls: tuple[e.Call, ...] = ()
) -> Pair:
    dual = bool(aiv.attrs.get("dual_aiv_dispatch"))
    codes = sorted({split_mode_to_int(c.kwargs.get("split")) for f in (aic, aiv) for c in _transfers(f)})
    if 0 in codes and len(codes) > 1 and not dual:
        raise ValueError(
            f"Conflicting cross-core split kwargs in group {group.name}: {codes}; a transfer without a split among "
            "split ones needs the attribute dual_aiv_dispatch, so that it is known which lanes take part"
        )
    nonzero = [c for c in codes if c]
    split = nonzero[0] if nonzero else 0
    if not codes:
        split = split_mode_to_int(group.split) or split_mode_to_int(aiv.split)
    mixed = len(codes) > 1 and 0 in codes
    return Pair(group.name, aic.name, aiv.name, split, dual, _is_logical(aic, aiv), result, mixed, direct, calls)


def _transfers(function: Function) -> list[e.Call]:
    return [c for c in calls_in(function.body) if isinstance(c, e.Call) and c.op.name in TRANSFERS]


def _is_logical(aic: Function, aiv: Function) -> bool:
    """True when the vector function is still written for the whole tile: one logical core instead of two lanes."""
    if aiv.attrs.get("split_aiv") or any(c.op.name.endswith("get_subblock_idx") for c in calls_in(aiv.body)):
        return False
    if aiv.attrs.get("dual_aiv_dispatch") and not aiv.attrs.get("split"):
        # Before SplitVectorKernel adds the idle lane, both lanes would repeat the whole kernel, read-modify-writes too.
        return all(not split_mode_to_int(c.kwargs.get("split")) for c in _transfers(aiv))
    if aiv.attrs.get("dual_aiv_dispatch") or not aiv.attrs.get("split"):
        return False
    mine = [_extents(c) for c in _transfers(aiv)]
    other = [_extents(c) for c in _transfers(aic)]
    return bool(mine) and sorted(map(repr, mine)) == sorted(map(repr, other))


def _extents(call: e.Call) -> tuple[int, ...] | None:
    type_ = call.args[0].type if call.args else call.type
    return e.static_dims(type_.shape) if isinstance(type_, ShapedType) else None


def syncing_functions(flows: Mapping[str, Flow], pairs: Mapping[str, Pair]) -> set[str]:
    """Functions and groups that reach a barrier, themselves or through what they call."""
    found = {n for n, flow in flows.items() if any(call.op.name == "system.syncall" for call, _, _ in flow.calls)}
    while True:
        more = {n for n, pair in pairs.items() if n not in found and {pair.aic, pair.aiv} & found}
        more |= {n for n, flow in flows.items() if n not in found and any(c.op.name in found for c, _, _ in flow.calls)}
        if not more:
            return found
        found |= more


def waiting_functions(
    flows: Mapping[str, Flow], functions: Mapping[str, Function], pairs: Mapping[str, Pair], meeting: Set[str]
) -> set[str]:
    """Kernels that contain transfers or barriers, those whose lanes are `meeting`, and those that call such kernels."""
    found = {n for n, flow in flows.items() if any(call.op.name in _WAITING for call, _, _ in flow.calls)} | meeting
    syncing = {n for n, flow in flows.items() if any(call.op.name == "system.syncall" for call, _, _ in flow.calls)}
    for pair in pairs.values():
        if {pair.aic, pair.aiv} & syncing:
            found.add(pair.group)
    found = {n for n in found if n in pairs or functions[n].func_type is not FunctionType.Group}
    while True:
        more = {
            n
            for n, flow in flows.items()
            if n not in found
            and functions[n].func_type in _DEVICE
            and any(call.op.name in found and callee_of(call, functions) is not None for call, _, _ in flow.calls)
        }
        if not more:
            return found
        found |= more


def two_lane_functions(functions: Mapping[str, Function], pairs: Mapping[str, Pair]) -> set[str]:
    """Kernels that run by themselves and whose vector statements are written for one of two lanes.

    A kernel of both cores before it is taken apart, or one of the vector core only; the members of a group are run by
    the group.
    """
    members = {pair.aiv for pair in pairs.values()}
    return {name for name, f in functions.items() if name not in members and _is_two_lane(f)}


def _is_two_lane(function: Function) -> bool:
    if function.func_type not in (FunctionType.InCore, FunctionType.AIV) or not function.attrs.get("split_aiv"):
        return False
    return not any(isinstance(s, SplitAivScopeStmt) for s in walk_stmts(function.body))


def launched_functions(flows: Mapping[str, Flow], functions: Mapping[str, Function]) -> set[str]:
    """Functions that may run as a block of a launch, and those they call."""
    found = {n for n, flow in flows.items() if any(isinstance(x, SpmdScopeStmt) for x in flow.scopes)}
    todo = [call.op.name for flow in flows.values() for call, _, _ in flow.calls if core_num_of(call)]
    todo += [c.op.name for n in found for c, _, _ in flows[n].calls if callee_of(c, functions) is not None]
    while todo:
        name = todo.pop()
        if name in functions and name not in found:
            found.add(name)
            todo += [c.op.name for c, _, _ in flows[name].calls if callee_of(c, functions) is not None]
    return found
