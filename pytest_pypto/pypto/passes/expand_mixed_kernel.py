"""ExpandMixedKernel: a kernel for both cores becomes a cube function, a vector function and a group that calls them."""

from __future__ import annotations

from dataclasses import dataclass

from ..backend import BackendType
from ..backend.handler import Handler, current_handler, handler_for
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from .base import Pass
from .mixed.affinity import Affinity, Side
from .mixed.binding import bind_missing, tensor_versions
from .mixed.cleanup import remove_unneeded
from .mixed.gm_sync import add_memory_tokens
from .mixed.group import cloned, make_group, rewrite_group_caller
from .mixed.handwritten import finish_core_function, unify_group_members
from .mixed.pipes import DEFAULT_SLOTS, has_setup, insert_setup, pipe_setup
from .mixed.prune import Pruner
from .mixed.tfree import place_frees

_KIND = {Side.CUBE: FunctionType.AIC, Side.VECTOR: FunctionType.AIV}


@dataclass(frozen=True)
class ExpandMixedKernel(Pass):
    """Gives every InCore function its core; a mixed one is split, and tiles cross through a pipe."""

    name = "ExpandMixedKernel"
    requires = frozenset(
        {
            *("SSAForm", "SplitIncoreOrch", "IncoreTileOps", "TileOps2D"),
            *("NormalizedStmtStructure", "TileMemoryInferred"),
        }
    )
    produces = frozenset({"SSAForm", "MixedKernelExpanded", "NormalizedStmtStructure", "HardSyncallOccupancyValid"})

    def apply(self, program: Program) -> Program:
        """The program without InCore functions.

        Raises:
            ValueError: a value that only one core has is needed by the other, or a transfer cannot be made.
        """
        handler = current_handler() or handler_for(BackendType.Ascend910B)
        grouped = _called_by_groups(program)
        functions: list[Function] = []
        halves: dict[str, tuple[str, str]] = {}
        for func in program.functions.values():
            if func.func_type is not FunctionType.InCore:
                functions.append(finish_core_function(func, handler))
                continue
            made = expand(func, handler)
            if len(made) > 1 and func.name in grouped:
                halves[func.name] = (made[0].name, made[1].name)
                made = made[:2]
            functions.extend(made)
        if halves:
            functions = [rewrite_group_caller(f, halves) if f.func_type is FunctionType.Group else f for f in functions]
        return unify_group_members(program.with_functions(functions))


def _called_by_groups(program: Program) -> set[str]:
    from ..ir import expr as e
    from ..ir.visitor import calls_in

    groups = (f for f in program.functions.values() if f.func_type is FunctionType.Group)
    return {c.op.name for f in groups for c in calls_in(f.body) if isinstance(c.op, e.GlobalVar)}


def expand(func: Function, handler: Handler) -> list[Function]:
    """One InCore function as a core function, or as cube half, vector half and group."""
    func = add_memory_tokens(func)
    affinity = Affinity()
    side = affinity.of_body(func.body)
    if side is not Side.MIXED:
        return [finish_core_function(_single(func, _KIND.get(side, FunctionType.AIV)), handler)]
    earlier = tensor_versions(func.body)
    aic = _half(func, Side.CUBE, affinity, earlier, handler)
    aiv = _half(func, Side.VECTOR, affinity, earlier, handler)
    return [aic, aiv, make_group(func, aic, aiv)]


def _single(func: Function, kind: FunctionType) -> Function:
    attrs = {k: v for k, v in func.attrs.items() if k != "split"}
    return func.with_(type=kind, attrs=attrs)


def _half(func: Function, side: Side, affinity: Affinity, earlier: dict, handler: Handler) -> Function:  # type: ignore[type-arg]
    pruner = Pruner(side, affinity, handler.v2c_fractal_adaptation)
    body = remove_unneeded(pruner.body(func.body))
    body = remove_unneeded(bind_missing(body, func.params, earlier, side))
    slots = int(func.attrs.get("slot_num", DEFAULT_SLOTS))
    own_setup = has_setup(func.body)
    body = place_frees(body, None if own_setup else slots)
    if not own_setup:
        body = insert_setup(body, pipe_setup(func.name, side, pruner.crossings, slots, func.span))
    kind = _KIND[side]
    name = f"{func.name}_{kind.name.lower()}"
    attrs = dict(func.attrs)
    if side is Side.CUBE:
        return cloned(func, body, name=name, type=kind, attrs=attrs, return_types=())
    whole = func.split is not None and any(c.split == 0 for c in pruner.crossings)
    if (handler.no_split_dual_aiv and func.split is None) or (whole and func.attrs.get("split_aiv")):
        attrs["dual_aiv_dispatch"] = True
    return cloned(func, body, name=name, type=kind, attrs=attrs)
