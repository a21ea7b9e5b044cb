"""Whole scripts: preamble, group table, functions."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.branches import complete_branches
from ..ir.program import Function, Program
from .catalog import needed_by
from .emit.exprs import ExprWriter
from .emit.function import PLAIN, FunctionText, FunctionWriter, Options
from .names import NameTable
from .plan.groups import Pair
from .plan.plan import Plan


@dataclass(frozen=True)
class Script:
    """A generated script: the part of the preamble it needs, the group table and the functions."""

    meta: str
    functions: tuple[FunctionText, ...]

    @property
    def body(self) -> str:
        """Group table and functions, without the preamble."""
        return self.meta + "".join(f.text + "\n" for f in self.functions)

    @property
    def text(self) -> str:
        """The whole script."""
        body = self.body
        return f"{needed_by(body)}\n\n{body}"

    def positions(self, first_line: int = 1) -> dict[int, str]:
        """Source place by line of `body`, whose first line has the number `first_line`."""
        found: dict[int, str] = {}
        line = first_line + self.meta.count("\n")
        for f in self.functions:
            found |= {line + k: place for k, place in f.positions.items()}
            line += f.text.count("\n") + 1
        return found


def write_script(node: Program | Function, options: Options = PLAIN) -> Script:
    """The script of a program, or of a function on its own."""
    plan = Plan(_with_complete_branches(node))
    functions = [FunctionWriter(plan, f, options).write() for f in plan.functions.values()]
    adapters = [_adapter(plan, pair, role) for pair in plan.pairs.values() if not pair.direct for role in (0, 1)]
    table = {name: plan.pairs[name].meta() for name in sorted(plan.pairs)}
    meta = f"_GROUP_META.update({table!r})\n\n" if table else ""
    return Script(meta, (*functions, *adapters))


def _with_complete_branches(node: Program | Function) -> Program | Function:
    """What the parser leaves to be read between the lines of an `elif` with results, said."""
    if isinstance(node, Function):
        return complete_branches(node)
    return node.with_functions([complete_branches(f) for f in node.functions.values()])


def _adapter(plan: Plan, pair: Pair, role: int) -> FunctionText:
    """A kernel that takes the group's arguments and passes the ones its call in the group's body names."""
    group, call = plan.functions[pair.group], pair.calls[role]
    names = NameTable(plan.functions)
    params = ", ".join(names.of(p) for p in group.params)
    waits = call.op.name in plan.waiting
    writer = ExprWriter(plan, group, names, lambda text: text, waits)
    name = f"_{pair.group}_{'aiv' if role else 'aic'}"
    value = writer.invoked(call.op.name, [writer.operand(a).text for a in call.args], [])
    return FunctionText(name, f"@_lane\ndef {name}({params}):\n    return {value}\n", {})
