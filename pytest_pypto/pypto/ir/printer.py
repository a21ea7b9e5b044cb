"""Printed form of programs: the only textual IR, readable as Python and loadable again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import expr as e
from . import stmt as s
from . import types as t
from .dtypes import INDEX
from .enums import ForKind, FunctionType, ParamDirection, Role, SplitMode
from .print_expr import ExprPrinter
from .print_names import Names, function_names
from .program import Function, Program
from .visitor import calls_in

INDENT = "    "
_FOR = {
    ForKind.Sequential: "range",
    ForKind.Parallel: "parallel",
    ForKind.Unroll: "unroll",
    ForKind.Pipeline: "pipeline",
}
_format_callback: Callable[[str], str] | None = None


def register_format_callback(callback: Callable[[str], str] | None) -> None:
    """Set (or with None remove) a text-to-text hook that `python_print(format=True)` applies."""
    global _format_callback
    _format_callback = callback


def python_print(
    node: Any, prefix: str = "pl", concise: bool = False, format: bool = True, explicit_layout: bool = False
) -> str:
    """The printed form of a program, function, statement, expression or type.

    Args:
        prefix: name under which `pypto.language` is imported.
        concise: leave out the annotations of assignments.
        format: apply the callback of `register_format_callback`, if there is one.
        explicit_layout: print the full layout of every tile.

    Raises:
        TypeError: `node` is not part of the IR.
    """
    text = _text(node, prefix, concise, explicit_layout)
    return _format_callback(text) if format and _format_callback is not None else text


def python_print_type(type: t.Type, prefix: str = "pl", format: bool = True, explicit_layout: bool = False) -> str:
    """The printed form of a type."""
    return ExprPrinter(None, prefix, explicit_layout).type(type)


def _text(node: Any, prefix: str, concise: bool, explicit: bool) -> str:
    if isinstance(node, Program):
        return print_program(node, prefix, concise, explicit)
    if isinstance(node, Function):
        return "\n".join(_Function(node, prefix, concise, explicit, member=False).lines(""))
    if isinstance(node, t.Type):
        return python_print_type(node, prefix, explicit_layout=explicit)
    if isinstance(node, s.Stmt):
        names = Names((), node, mark_free=False)
        return "\n".join(_Body(names, prefix, concise, explicit, member=False).stmt(node, "", None))
    if isinstance(node, e.Expr):
        return ExprPrinter(None, prefix, explicit, member=False).expr(node)
    raise TypeError(f"python_print expects a program, function, statement, expression or type, got {node!r}")


@dataclass(frozen=True, slots=True)
class PrintedFunction:
    """What a program's text needs of a function: its text as a member, symbols it needs declared, whom it calls."""

    text: str
    symbols: tuple[str, ...]
    callees: frozenset[str]


Printed = dict[Function, PrintedFunction]
"""What `print_program` remembers of functions."""


def print_program(
    program: Program, prefix: str = "pl", concise: bool = False, explicit: bool = False, printed: Printed | None = None
) -> str:
    """The printed form of a program. `printed` remembers functions between calls with the same other arguments."""
    importing = "import pypto.language as pl" if prefix == "pl" else f"from pypto import language as {prefix}"
    name = program.name or "Program"
    known = {} if printed is None else printed
    for f in program.functions.values():
        if f not in known:
            known[f] = _printed(f, prefix, concise, explicit)
    functions = [known[f] for f in _callees_first(program, known)]
    symbols = sorted({symbol for f in functions for symbol in f.symbols})
    lines = [f"# pypto.program: {name}", importing, ""]
    if symbols:
        lines += [*(f'{n} = {prefix}.dynamic("{n}")' for n in symbols), ""]
    lines += [f"@{prefix}.program", f"class {name}:", *(f.text for f in functions)]
    return "\n".join(lines)


def _printed(func: Function, prefix: str, concise: bool, explicit: bool) -> PrintedFunction:
    p = _Function(func, prefix, concise, explicit, member=True)
    return PrintedFunction("\n".join(p.lines(INDENT)), tuple(p.symbols()), p.names.callees)


def _callees_first(program: Program, printed: Printed) -> list[Function]:
    """Functions in printing order: callees before callers, by name among siblings; by name when calls form a cycle."""
    functions = {f.name: f for f in program.functions.values()}
    done: dict[str, bool] = {}
    order: list[Function] = []

    def visit(name: str) -> bool:
        if name in done:
            return done[name]
        done[name] = False
        if not all(visit(c) for c in sorted(printed[functions[name]].callees & functions.keys())):
            return False
        done[name] = True
        order.append(functions[name])
        return True

    return order if all(visit(name) for name in sorted(functions)) else list(functions.values())


class _Function:
    """Prints one function."""

    def __init__(self, func: Function, prefix: str, concise: bool, explicit: bool, member: bool) -> None:
        self.func = func
        self.member = member
        self.names = function_names(func)
        self.body = _Body(self.names, prefix, concise, explicit, member)
        self.x = self.body.x
        self.p = prefix

    def symbols(self) -> Iterator[str]:
        """Names that the head of the file must declare."""
        yield from (v.name_hint for v in self.names.symbols)
        params = set(self.func.params)
        for param in self.func.params:
            if isinstance(param.type, t.TensorType) and param.type.tensor_view is not None:
                for dim in param.type.tensor_view.valid_shape:
                    if isinstance(dim, e.Var) and dim in params:
                        yield dim.name_hint

    def lines(self, indent: str) -> list[str]:
        func = self.func
        self.x.signature = True
        params = [self.param(v, d) for v, d in func.pairs]
        returns = [self.x.type(r) for r in func.return_types]
        self.x.signature = False
        if self.member and func.role is not Role.SubWorker:
            params.insert(0, "self")
        arrow = "" if not returns else f" -> {returns[0]}" if len(returns) == 1 else f" -> tuple[{', '.join(returns)}]"
        head = [f"{indent}{self.decorator()}", f"{indent}def {func.name}({', '.join(params)}){arrow}:"]
        inner = indent + INDENT
        attrs = self.attributes(inner)
        body = self.body.block(func.body, inner, ())
        if func.requires_runtime_binding:
            body = [f"{inner}..."]
        elif attrs and body == [f"{inner}pass"]:
            body = []
        return head + attrs + body

    def decorator(self) -> str:
        f, p = self.func, self.p
        items = [] if f.func_type is FunctionType.Opaque else [f"type={p}.FunctionType.{f.func_type.name}"]
        items += [] if f.level is None else [f"level={p}.Level.{f.level.name}"]
        items += [] if f.role is None else [f"role={p}.Role.{f.role.name}"]
        items += ["auto_scope=False"] if f.attrs.get("auto_scope") is False else []
        source = f.attrs.get("external_source")
        items += [] if source is None else [f"external_source={self.x.value(source, '', chr(34))}"]
        return f"@{p}.function" + (f"({', '.join(items)})" if items else "")

    def param(self, var: e.Var, direction: ParamDirection) -> str:
        text = self.x.type(var.type)
        if direction is not ParamDirection.In:
            text = f"{self.p}.{direction.name}[{text}]"
        return f"{self.x.name(var)}: {text}"

    def attributes(self, indent: str) -> list[str]:
        shown = {k: v for k, v in self.func.attrs.items() if k not in ("auto_scope", "external_source")}
        if isinstance(shown.get("split"), int) and not isinstance(shown["split"], bool):
            shown["split"] = SplitMode(shown["split"])
        if not shown:
            return []
        items = ", ".join(f'"{k}": {self.x.value(v, k, chr(34))}' for k, v in shown.items())
        return [f"{indent}{self.p}.func_attr({{{items}}})"]


class _Body:
    """Prints statements."""

    def __init__(self, names: Names, prefix: str, concise: bool, explicit: bool, member: bool) -> None:
        self.x = ExprPrinter(names, prefix, explicit, member)
        self.names = names
        self.p = prefix
        self.concise = concise

    def block(self, body: s.Stmt | None, indent: str, results: Sequence[e.Var] | None) -> list[str]:
        """Lines of a body; `results` are the names its last yield binds."""
        stmts = s.stmts_of(body)
        lines: list[str] = []
        for i, stmt in enumerate(stmts):
            if i + 1 < len(stmts) and self.is_placeholder(stmt, stmts[i + 1]):
                continue
            lines += self.stmt(stmt, indent, results if i == len(stmts) - 1 else ())
        return lines or [f"{indent}pass"]

    def is_placeholder(self, stmt: s.Stmt, following: s.Stmt) -> bool:
        """The `tid = task_invalid()` in front of a scope printed with `as tid`."""
        if not isinstance(stmt, s.AssignStmt) or not isinstance(following, s.ScopeStmt):
            return False
        call = stmt.value
        invalid = isinstance(call, e.Call) and call.op.name == "system.task_invalid"
        return invalid and following.attrs.get("task_id_var") is stmt.var

    def stmt(self, stmt: s.Stmt, indent: str, results: Sequence[e.Var] | None) -> list[str]:
        comments = [f"{indent}# {c}".rstrip() for c in stmt.leading_comments]
        return comments + self._stmt(stmt, indent, results)

    def _stmt(self, stmt: s.Stmt, indent: str, results: Sequence[e.Var] | None) -> list[str]:
        if isinstance(stmt, s.AssignStmt):
            return [f"{indent}{self.target(stmt.var)} = {self.x.expr(stmt.value)}"]
        if isinstance(stmt, s.EvalStmt):
            return [indent + self.x.expr(stmt.expr)]
        if isinstance(stmt, s.ReturnStmt):
            return [f"{indent}return {self.x.join(stmt.value)}".rstrip()]
        if isinstance(stmt, s.YieldStmt):
            return [indent + self.yield_(stmt, results)]
        if isinstance(stmt, s.SeqStmts):
            return self.block(stmt, indent, results)
        if isinstance(stmt, s.ForStmt):
            return [indent + self.for_head(stmt), *self.block(stmt.body, indent + INDENT, stmt.return_vars)]
        if isinstance(stmt, s.WhileStmt):
            return self.while_(stmt, indent)
        if isinstance(stmt, s.IfStmt):
            return self.if_(stmt, indent)
        if isinstance(stmt, s.ScopeStmt):
            return self.scope(stmt, indent, results)
        if isinstance(stmt, s.BreakStmt):
            return [indent + "break"]
        if isinstance(stmt, s.ContinueStmt):
            return [indent + "continue"]
        if isinstance(stmt, s.InlineStmt):
            return [indent + line for line in stmt.body.splitlines()]
        raise TypeError(f"cannot print {type(stmt).__name__}: not an IR statement")

    def target(self, var: e.Var) -> str:
        return self.x.name(var) if self.concise else f"{self.x.name(var)}: {self.x.type(var.type)}"

    def yield_(self, stmt: s.YieldStmt, results: Sequence[e.Var] | None) -> str:
        values = self.x.join(stmt.value)
        if results is None:
            return f"return {values}"
        if not results:
            return f"{self.p}.yield_({values})"
        names = self.target(results[0]) if len(results) == 1 else ", ".join(map(self.x.name, results))
        return f"{names} = {self.p}.yield_({values})"

    def tuple_of(self, texts: Sequence[str]) -> str:
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"

    def inits(self, iter_args: Sequence[e.IterArg]) -> str:
        return f"init_values={self.tuple_of([self.x.expr(a.initValue) for a in iter_args])}"

    def for_head(self, stmt: s.ForStmt) -> str:
        items = self.bounds(stmt)
        attrs = dict(stmt.attrs)
        stages = attrs.pop("pipeline_stages", None)
        items += [] if stages is None else [f"stage={stages}"]
        names = self.x.name(stmt.loop_var)
        if stmt.iter_args:
            names += ", " + self.tuple_of([self.x.name(a) for a in stmt.iter_args])
            items.append(self.inits(stmt.iter_args))
        items += self.x.attrs(attrs)
        return f"for {names} in {self.p}.{_FOR[stmt.kind]}({', '.join(items)}):"

    def bounds(self, stmt: s.ForStmt) -> list[str]:
        plain_start, plain_step = _is_index(stmt.start, 0), _is_index(stmt.step, 1)
        if plain_start and plain_step:
            return [self.x.expr(stmt.stop)]
        shown = [stmt.start, stmt.stop] if plain_step else [stmt.start, stmt.stop, stmt.step]
        return [self.x.expr(b) for b in shown]

    def while_(self, stmt: s.WhileStmt, indent: str) -> list[str]:
        body = self.block(stmt.body, indent + INDENT, stmt.return_vars)
        if not stmt.iter_args:
            return [f"{indent}while {self.x.expr(stmt.condition)}:", *body]
        names = self.tuple_of([self.x.name(a) for a in stmt.iter_args])
        head = f"{indent}for {names} in {self.p}.while_({self.inits(stmt.iter_args)}):"
        return [head, f"{indent}{INDENT}{self.p}.cond({self.x.expr(stmt.condition)})", *body]

    def if_(self, stmt: s.IfStmt, indent: str) -> list[str]:
        lines = [f"{indent}if {self.x.expr(stmt.condition)}:"]
        lines += self.block(stmt.then_body, indent + INDENT, stmt.return_vars)
        if stmt.else_body is not None:
            lines += [f"{indent}else:", *self.block(stmt.else_body, indent + INDENT, stmt.return_vars)]
        return lines

    # scopes ----------------------------------------------------------------------------------------------------

    def scope(self, stmt: s.ScopeStmt, indent: str, results: Sequence[e.Var] | None) -> list[str]:
        if isinstance(stmt, s.SpmdScopeStmt):
            return self.spmd(stmt, indent, results)
        if isinstance(stmt, s.SplitAivScopeStmt):
            return self.split_aiv(stmt, indent, results)
        if isinstance(stmt, s.CommDomainScopeStmt):
            return self.comm_domain(stmt, indent, results)
        task = stmt.attrs.get("task_id_var")
        bound = f" as {self.x.name(task)}" if isinstance(task, e.Var) else ""
        head = f"{indent}with {self.p}.{self.context(stmt)}{bound}:"
        return [head, *self.block(stmt.body, indent + INDENT, results)]

    def context(self, stmt: s.ScopeStmt) -> str:
        if isinstance(stmt, s.InCoreScopeStmt):
            items = [f"level={self.p}.Level.CORE_GROUP", *self.optimizations(stmt), *self.options(stmt, stmt.name_hint)]
            return f"at({', '.join(items)})"
        if isinstance(stmt, s.HierarchyScopeStmt):
            items = [f"level={self.p}.Level.{stmt.level.name}"]
            items += [] if stmt.role is None else [f"role={self.p}.Role.{stmt.role.name}"]
            return f"at({', '.join(items + self.options(stmt, stmt.name_hint))})"
        if isinstance(stmt, s.ClusterScopeStmt):
            return f"cluster({', '.join(self.options(stmt, stmt.name_hint))})"
        assert isinstance(stmt, s.RuntimeScopeStmt)
        mode = [f"mode={self.p}.ScopeMode.MANUAL"] if stmt.manual else []
        return f"scope({', '.join(mode + self.x.attrs(stmt.attrs, _SCOPE_ATTRS))})"

    def optimizations(self, stmt: s.InCoreScopeStmt) -> list[str]:
        items = [] if stmt.split is SplitMode.NONE else [f"{self.p}.split({self.p}.SplitMode.{stmt.split.name})"]
        slots = stmt.attrs.get("slot_num")
        items += [] if slots is None else [f"{self.p}.cross_core_slot(slot_num={slots})"]
        return [f"optimizations=[{', '.join(items)}]"] if items else []

    def options(self, stmt: s.ScopeStmt, name_hint: str) -> list[str]:
        items = [f'name_hint="{name_hint}"'] if name_hint else []
        for key, attr in (
            ("deps", "manual_dep_edges"),
            ("no_dep_args", "arg_direction_overrides_vars"),
            ("dumps", "dump_vars"),
        ):
            if stmt.attrs.get(attr):
                items.append(f"{key}={self.x.value(stmt.attrs[attr])}")
        items += [f"{key}=True" for key in ("allow_early_resolve", "windowize") if stmt.attrs.get(key)]
        return items + self.x.attrs(stmt.attrs, _SCOPE_ATTRS)

    def spmd(self, stmt: s.SpmdScopeStmt, indent: str, results: Sequence[e.Var] | None) -> list[str]:
        core = self.merged_region(stmt)
        items = [self.x.expr(stmt.core_num)]
        items += ["sync_start=True"] if stmt.sync_start else []
        items += [f'name_hint="{stmt.name_hint}"'] if stmt.name_hint else []
        items += [] if core is None else self.optimizations(core)
        task = stmt.attrs.get("task_id_var")
        if isinstance(task, e.Var) and stmt.attrs.get("manual_dep_edges"):
            items.append(f"deps={self.x.value(stmt.attrs['manual_dep_edges'])}")
        items += ["allow_early_resolve=True"] if stmt.attrs.get("allow_early_resolve") else []
        if stmt.attrs.get("predicate") is not None:
            items.append(f"predicate=({self.x.value(stmt.attrs['predicate'])})")
        items += self.x.attrs(stmt.attrs, _SCOPE_ATTRS)
        call = f"{self.p}.spmd({', '.join(items)})"
        block = s.stmts_of(core.body) if core is not None else ()
        if block and not isinstance(task, e.Var) and _defines_by(block[0], "tile.get_block_idx"):
            name = self.x.name(block[0].var)  # type: ignore[attr-defined]
            body = s.SeqStmts(block[1:])
            return [f"{indent}for {name} in {call}:", *self.block(body, indent + INDENT, results)]
        bound = f" as {self.x.name(task)}" if isinstance(task, e.Var) else ""
        shown = core.body if core is not None else stmt.body
        return [f"{indent}with {call}{bound}:", *self.block(shown, indent + INDENT, results)]

    def merged_region(self, stmt: s.SpmdScopeStmt) -> s.InCoreScopeStmt | None:
        """The region of a launch when it is written as part of the launch; None when it needs a line of its own."""
        inner = s.stmts_of(stmt.body)
        core = inner[0] if len(inner) == 1 else None
        if not isinstance(core, s.InCoreScopeStmt) or core.attrs.keys() - {"slot_num"}:
            return None
        if spmd_hints(stmt.name_hint) != (stmt.name_hint, core.name_hint):
            return None
        asks = any(c.op.name == "tile.get_block_idx" for c in calls_in(core.body))
        return core if asks or self.optimizations(core) else None

    def split_aiv(self, stmt: s.SplitAivScopeStmt, indent: str, results: Sequence[e.Var] | None) -> list[str]:
        body = s.stmts_of(stmt.body)
        name = "aiv_id"
        if body and _defines_by(body[0], "tile.get_subblock_idx"):
            name = self.x.name(body[0].var)  # type: ignore[attr-defined]
            body = body[1:]
        head = f"{indent}for {name} in {self.p}.split_aiv({stmt.count}, mode={self.p}.SplitMode.{stmt.split.name}):"
        self.x.in_region, outer = True, self.x.in_region
        lines = self.block(s.SeqStmts(body), indent + INDENT, results)
        self.x.in_region = outer
        return [head, *lines]

    def comm_domain(self, stmt: s.CommDomainScopeStmt, indent: str, results: Sequence[e.Var] | None) -> list[str]:
        devices = f"[{', '.join(map(str, stmt.devices))}]" if stmt.devices else "all"
        slots = ", ".join(self.x.name(v) for v in stmt.slots)
        note = f"{indent}# pld.comm_domain: devices={devices}, slots=[{slots}]"
        return [note, *self.block(stmt.body, indent, results)]


_SCOPE_ATTRS = frozenset(
    {
        *("task_id_var", "manual_dep_edges", "arg_direction_overrides_vars", "dump_vars", "allow_early_resolve"),
        *("windowize", "slot_num", "predicate"),
    }
)
"""Scope attributes that have a notation of their own; others print as `attrs={...}`."""


def spmd_hints(hint: str) -> tuple[str, str]:
    """(hint of a launch, hint of the region inside it) that `name_hint=hint` of `pl.spmd` means."""
    if not hint:
        return "", ""
    return (hint, hint.removesuffix("_spmd")) if hint.endswith("_spmd") else (f"{hint}_spmd", hint)


def _is_index(x: e.Expr, value: int) -> bool:
    return isinstance(x, e.ConstInt) and x.value == value and x.dtype is INDEX


def _defines_by(stmt: s.Stmt, op: str) -> bool:
    return isinstance(stmt, s.AssignStmt) and isinstance(stmt.value, e.Call) and stmt.value.op.name == op
