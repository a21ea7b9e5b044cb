"""Which function of a program is run, and which tensor belongs to which parameter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.visitor import calls_in

SSA_SUFFIX_RE = re.compile(r"__ssa_v\d+$")


def select_entry_function(node: Program | Function, entry: str | None = None) -> Function:
    """The function to run: the named one, the only one, the first orchestration, else the one that nobody calls.

    Raises:
        ValueError: there is none, or the program has several and no orchestration.
    """
    if isinstance(node, Function):
        return node
    functions = list(node.functions.values())
    if not functions:
        raise ValueError(f"Program '{node.name}' has no functions")
    if entry is not None:
        named = node.get_function(entry)
        if named is None:
            raise ValueError(
                f"Program '{node.name}' has no function '{entry}' (it has: {', '.join(f.name for f in functions)})"
            )
        return named
    if len(functions) == 1:
        return functions[0]
    for function in functions:
        if function.func_type is FunctionType.Orchestration:
            return function
    called = {call.op.name for f in functions for call in calls_in(f.body)}
    host = [f for f in functions if f.func_type is FunctionType.Opaque and f.name not in called]
    if len(host) == 1:
        return host[0]
    raise ValueError(
        f"Program '{node.name}' has {len(functions)} functions but no Orchestration entry; "
        "give the entry by name or make it an Orchestration function"
    )


def argument_key(name: str, values: Mapping[str, Any]) -> str:
    """The key of `values` that belongs to parameter `name`: the name, or the name without its SSA suffix.

    Raises:
        KeyError: neither is there.
    """
    if name in values:
        return name
    short = SSA_SUFFIX_RE.sub("", name)
    if short in values:
        return short
    raise KeyError(f"Cannot resolve tensor for parameter '{name}'. Available keys: {sorted(values)}")
