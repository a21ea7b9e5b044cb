"""The body of a jit function rewritten for one specialisation.

Shapes and scalar arguments become literals, calls of other jit functions become calls within the program, variables
that change their type get new names. Every new node keeps the place of the node it stands for.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from ..language.parser.constants import dotted
from ..language.parser.context import Ctx
from ..language.parser.diagnostics import ParserTypeError
from ..language.parser.names import MISSING
from .late import (
    asks,
    check_count,
    computed,
    dtype_node,
    dtype_shown,
    dtypes_compared,
    extents_node,
    flattened,
    folds,
    item_of,
    joined,
    late,
    number_of,
    placed,
)
from .params import bind_call, dynamic_name
from .renaming import ROOT, Block, Names, _targets, stored

Extents = list[int | None]
"""Extents of a tensor; None for one that is known at run time only."""

_SAME_AS = {"store": 2, "assemble": 0, "write": 0}
_CALL_KEYWORDS = ("attrs", "device")
"""Keywords of a call that are not for the function that is called."""
_SUBMITS = ("submit", "spmd_submit")


@dataclass(frozen=True)
class Callee:
    """A jit function that another one calls: its name in the program, its parameters in order, and their defaults."""

    name: str
    params: tuple[str, ...]
    defaults: Mapping[str, int | float | bool] = field(default_factory=dict)
    inline: bool = False


def calls_of(node: ast.AST, known: Collection[str]) -> Iterator[tuple[str, list[ast.expr], list[ast.keyword]]]:
    """(name, arguments, keywords) when `node` calls or submits one of the functions in `known`."""
    if not isinstance(node, ast.Call):
        return
    func = node.func
    name = dotted(func)
    if name in known:
        yield str(name), node.args, node.keywords
    elif isinstance(func, ast.Attribute) and func.attr in _SUBMITS and node.args:
        first = dotted(node.args[0])
        if first in known:
            yield str(first), node.args[1:], []


@dataclass
class Facts:
    """What specialisation knows before it starts."""

    scalars: Mapping[str, int | float | bool]
    extents: Mapping[str, Extents]
    dtypes: Mapping[str, str]
    callees: Mapping[str, Callee]
    """Other jit functions by the name the body calls them."""
    entries: Collection[str] = ()
    """Names of jit functions that the body must not call."""


@dataclass
class Rewriter(ast.NodeTransformer):
    """Rewrites one function. `ctx` resolves names around it."""

    ctx: Ctx
    facts: Facts
    names: Names = field(default_factory=Names)
    consts: dict[str, int | float | bool] = field(default_factory=dict)
    lists: dict[str, ast.List] = field(default_factory=dict)
    """Variables that stand for a list of constants, such as `s = a.shape`."""
    known: dict[str, Extents] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    once: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)
    """Variables that may turn out to be numbers when the parser gets to them."""
    before: list[ast.stmt] = field(default_factory=list)
    """Calls taken out of the statement at hand."""
    whole: ast.expr | None = None
    """The expression that is the value of the statement at hand."""

    def run(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """The new body."""
        params = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        counts: dict[str, int] = dict.fromkeys(params, 1)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self.names.taken.add(inner.id)
                if isinstance(inner.ctx, ast.Store):
                    counts[inner.id] = counts.get(inner.id, 0) + 1
        self.once = {n for n, k in counts.items() if k == 1} - set(params)
        self.consts = {n: v for n, v in self.facts.scalars.items() if counts[n] == 1}
        self.known, self.dtypes = dict(self.facts.extents), dict(self.facts.dtypes)
        for name in params:
            self.names.keep(name, ROOT)
        return self._block(node.body, ROOT)

    # statements ------------------------------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], block: Block) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for number, stmt in enumerate(body):
            made += self._statement(stmt, block, number)
        return made

    def _statement(self, stmt: ast.stmt, block: Block, number: int) -> list[ast.stmt]:
        outer, self.before = self.before, []
        made = self._rewritten(stmt, block, number)
        before, self.before = self.before, outer
        return [late(s, force=self._computes(s)) for s in (*before, *made)]

    def _computes(self, stmt: ast.stmt) -> bool:
        """True when one of Python's own functions is called with what may turn out to be a number."""
        calls = [n for n in ast.walk(stmt) if isinstance(n, ast.Call) and folds(n)] if self.late else []
        return any(isinstance(n, ast.Name) and n.id in self.late for call in calls for n in ast.walk(call))

    def _rewritten(self, stmt: ast.stmt, block: Block, number: int) -> list[ast.stmt]:
        if bind_call(stmt) is not None or dynamic_name(self.ctx, stmt) is not None:
            return []
        if isinstance(stmt, (ast.Assign, ast.AnnAssign)):
            return self._assign(stmt, block)
        if isinstance(stmt, (ast.For, ast.While)):
            return self._loop(stmt, block, number)
        if isinstance(stmt, ast.If):
            test = self.visit(stmt.test)
            if isinstance(stmt.test, ast.Compare) and isinstance(test, ast.Constant):
                return self._block(stmt.body if test.value else stmt.orelse, block)
            inner = (*block, (number, "if"))
            made = ast.If(test, self._block(stmt.body, inner), self._block(stmt.orelse, inner))
            return [ast.copy_location(made, stmt)]
        if isinstance(stmt, ast.With):
            return [self._with(stmt, block, number)]
        self.whole = stmt.value if isinstance(stmt, ast.Expr) else None
        return [self.visit(stmt)]

    def _assign(self, stmt: ast.Assign | ast.AnnAssign, block: Block) -> list[ast.stmt]:
        if stmt.value is None:
            return [stmt]
        from_shape = self._is_shape(stmt.value)
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
        source = copy.deepcopy(stmt.value)
        self.whole = None if any(isinstance(t, ast.Subscript) for t in targets) else source
        value = self.visit(source)
        if len(targets) == 1 and from_shape:
            split = self._unpack(targets[0], value, stmt, block)
            if split is not None:
                return split
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            self._learn(targets[0].id, stmt.value)
        else:
            for name in stored(stmt):
                self._forget(name)
        new_targets = [self._target(t, block) for t in targets]
        if isinstance(stmt, ast.Assign):
            made: ast.stmt = ast.Assign(new_targets, value, lineno=stmt.lineno)
            if self._may_be_number(value):
                return [self._late_numbers(ast.copy_location(made, stmt))]
        else:
            said = self.visit(copy.deepcopy(stmt.annotation))
            made = ast.AnnAssign(new_targets[0], said, value, stmt.simple)  # type: ignore[call-overload]
        return [ast.copy_location(made, stmt)]

    def _may_be_number(self, value: ast.expr) -> bool:
        """True when the value is made of what a late shape may turn into numbers."""
        names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        calls = any(isinstance(n, ast.Call) and not folds(n) for n in ast.walk(value))
        return (asks(value) or bool(names & self.late)) and not calls

    def _late_numbers(self, stmt: ast.stmt) -> ast.stmt:
        names = frozenset(stored(stmt)) & self.once
        self.late |= names
        return late(stmt, names, force=True)

    def _target(self, node: ast.expr, block: Block) -> ast.expr:
        if isinstance(node, (ast.Tuple, ast.List)):
            made: ast.expr = type(node)([self._target(e, block) for e in node.elts], node.ctx)
        elif isinstance(node, ast.Name):
            made = ast.Name(self.names.assign(node.id, block), ast.Store())
        else:
            made = self.visit(node)
        return ast.copy_location(made, node)

    def _unpack(self, target: ast.expr, value: ast.expr, stmt: ast.stmt, block: Block) -> list[ast.stmt] | None:
        """`m, n = x.shape` and `m = x.shape[0] // 2`: constants vanish into their uses, the rest stays."""
        pairs = [(target, value)]
        if isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, ast.List):
                return None
            check_count(self.ctx, target, value)
            if len(value.elts) != len(target.elts):
                return None
            pairs = list(zip(target.elts, value.elts, strict=False))
        made: list[ast.stmt] = []
        for name, item in pairs:
            if not isinstance(name, ast.Name):
                return None
            number = number_of(item, _no_names)
            if number is not None and name.id in self.once:
                self.consts[name.id] = number
            elif isinstance(item, ast.List) and name.id in self.once and _all_constant(item):
                self.lists[name.id] = item
            else:
                place = ast.copy_location(ast.Assign([self._target(name, block)], item, lineno=stmt.lineno), stmt)
                made.append(self._late_numbers(place) if self._may_be_number(item) else place)
        return made

    def _loop(self, stmt: ast.For | ast.While, block: Block, number: int) -> list[ast.stmt]:
        inner = (*block, (number, "loop"))
        made: ast.For | ast.While
        before: list[tuple[str, str]] = []
        if isinstance(stmt, ast.For):
            head = self.visit(stmt.iter)
            for name in _targets(stmt.target):
                self.names.keep(name, inner)
                self._forget(name)
            before = self.names.enter_loop(stmt.body, inner)
            made = ast.For(stmt.target, head, self._block(stmt.body, inner), stmt.orelse)
        else:
            before = self.names.enter_loop(stmt.body, inner)
            taken = len(self.before)
            test = self.visit(stmt.test)
            if len(self.before) > taken:
                self._refuse_in_condition(stmt.test)
            made = ast.While(test, self._block(stmt.body, inner), stmt.orelse)
        return [*(_bridge(new, old, stmt) for new, old in before), ast.copy_location(made, stmt)]

    def _with(self, stmt: ast.With, block: Block, number: int) -> ast.stmt:
        items = []
        for item in stmt.items:
            alias = item.optional_vars
            if isinstance(alias, ast.Name):
                self.names.keep(alias.id, block)
            items.append(ast.withitem(self.visit(item.context_expr), alias))
        made = ast.With(items, self._block(stmt.body, (*block, (number, "with"))))
        return ast.copy_location(made, stmt)

    # expressions -----------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Scalar arguments and shape constants by value, variables by their present name."""
        if node.id in self.consts:
            return ast.copy_location(ast.Constant(self.consts[node.id]), node)
        if node.id in self.lists:
            return placed(copy.deepcopy(self.lists[node.id]), node)
        return ast.copy_location(ast.Name(self.names.read(node.id), node.ctx), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`x.shape` as a list of extents, `x.dtype` as `pl.<DTYPE>`."""
        if isinstance(node.value, ast.Name):
            name = node.value.id
            if node.attr == "shape" and name in self.known:
                return placed(extents_node(self.names.read(name), self.known[name]), node)
            if node.attr == "dtype" and name in self.dtypes:
                return placed(dtype_node(self.dtypes[name]), node)
        return ast.copy_location(ast.Attribute(self.visit(node.value), node.attr, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """`x.shape[i]` as one extent."""
        made = ast.Subscript(self.visit(node.value), self.visit(node.slice), node.ctx)
        found = item_of(made, _no_names) if isinstance(node.ctx, ast.Load) and self._is_shape(node.value) else None
        return ast.copy_location(made, node) if found is None else found

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Element types that are compared, as `True` or `False`."""
        made = ast.Compare(self.visit(node.left), node.ops, [self.visit(c) for c in node.comparators])
        return dtypes_compared(self.ctx, made) or ast.copy_location(made, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Calls and submissions of other jit functions, and `len(x.shape)`."""
        func, name = node.func, dotted(node.func) or ""
        if name in self.facts.callees:
            return self._callee(node, self.facts.callees[name])
        if name in self.facts.entries:
            hint = "decorate it with @pl.jit.inline, @pl.jit.incore or @pl.jit.opaque to call it from a jit function"
            self.ctx.fail(
                ParserTypeError, f"'{name}' is an entry (@pl.jit); entries are called from Python", node, hint
            )
        path = self.ctx.path(func)
        if path is not None and path[0] == "pl" and path[1] in _SUBMITS and node.args:
            first = node.args[0]
            callee = self.facts.callees.get(dotted(first) or "")
            if callee is not None:
                rest = [self.visit(a) for a in self._arguments(callee, node, node.args[1:], {})]
                member = _member(first, callee.name)
                made = ast.Call(func, [member, *rest], [self.visit(k) for k in node.keywords])
                return ast.copy_location(made, node)
        made = ast.Call(
            func if path is not None else self.visit(func),
            [self.visit(a) for a in node.args],
            [ast.copy_location(ast.keyword(k.arg, self.visit(k.value)), k) for k in node.keywords],
        )
        ast.copy_location(made, node)
        shapes = any(self._is_shape(a) for a in node.args)
        return (computed(made, self.ctx) or made) if shapes else made

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """`[1] + a.shape` as one list."""
        made = ast.copy_location(ast.BinOp(self.visit(node.left), node.op, self.visit(node.right)), node)
        return joined(made) or made

    def visit_List(self, node: ast.List) -> ast.expr:
        """`[1, *a.shape]`."""
        made = ast.List([self.visit(e) for e in node.elts], node.ctx)
        return flattened(ast.copy_location(made, node))

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        """`{a.dtype}` in a text."""
        value = self.visit(node.value)
        made = ast.copy_location(ast.FormattedValue(value, node.conversion, node.format_spec), node)
        return (dtype_shown(made) or made) if asks(node.value) else made

    def _callee(self, node: ast.Call, callee: Callee) -> ast.expr:
        """`k(a, out=o)` as `self.k(a, o)`: arguments in the order of the parameters."""
        func, inside = node.func, node is not self.whole
        named = {k.arg: k.value for k in node.keywords if k.arg is not None and k.arg in callee.params}
        rest = [k for k in node.keywords if k.arg not in callee.params]
        for keyword in rest:
            if keyword.arg not in _CALL_KEYWORDS:
                self._refuse(node, f"{callee.name}() got an unexpected keyword argument '{keyword.arg or '**'}'")
        args = self._arguments(callee, node, node.args, named)
        keywords = [ast.copy_location(ast.keyword(k.arg, self.visit(k.value)), k.value) for k in rest]
        made = ast.copy_location(ast.Call(_member(func, callee.name), [self.visit(a) for a in args], keywords), node)
        return self._taken_out(made, callee.name) if callee.inline and inside else made

    def _taken_out(self, call: ast.Call, name: str) -> ast.expr:
        """An inline function is called in a statement of its own: `t = f(x)`, and `t` in the place of the call."""
        k = 0
        while (temp := f"{name}_result{k or ''}") in self.names.taken:
            k += 1
        self.names.taken.add(temp)
        target = ast.copy_location(ast.Name(temp, ast.Store()), call)
        self.before.append(ast.copy_location(ast.Assign([target], call, lineno=call.lineno), call))
        return ast.copy_location(ast.Name(temp, ast.Load()), call)

    def _refuse_in_condition(self, node: ast.expr) -> NoReturn:
        message = "an inline jit function cannot be called in the condition of a while loop"
        self.ctx.fail(ParserTypeError, message, node, "call it in the body and assign the result to a name")

    def _arguments(
        self, callee: Callee, node: ast.Call, given: Sequence[ast.expr], named: Mapping[str, ast.expr]
    ) -> list[ast.expr]:
        """One argument per parameter; defaults that are numbers are written out.

        Raises:
            ParserTypeError: too many, too few, or one given twice.
        """
        names = callee.params
        if any(isinstance(a, ast.Starred) for a in given):
            self._refuse(node, f"{callee.name}() takes no starred arguments")
        if len(given) > len(names):
            self._refuse(node, f"{callee.name}() takes {len(names)} arguments but {len(given)} were given")
        args = list(given)
        for name in names[: len(given)]:
            if name in named:
                self._refuse(node, f"{callee.name}() got multiple values for argument '{name}'")
        for name in names[len(given) :]:
            if name in named:
                args.append(named[name])
            elif name in callee.defaults:
                args.append(_number_node(callee.defaults[name], node))
            else:
                self._refuse(node, f"{callee.name}() missing argument '{name}'")
        return args

    def _refuse(self, node: ast.Call, message: str) -> NoReturn:
        self.ctx.fail(ParserTypeError, message, node, "pass one argument per parameter of the jit function")

    # shapes ----------------------------------------------------------------------------------------------------------

    def _is_shape(self, node: ast.expr) -> bool:
        """True when the value of `node` comes from the shape of a tensor."""
        return any(
            (isinstance(n, ast.Attribute) and n.attr == "shape" and isinstance(n.value, ast.Name))
            or (isinstance(n, ast.Name) and (n.id in self.consts or n.id in self.lists) and n.id in self.once)
            for n in ast.walk(node)
        ) and not any(isinstance(n, ast.Call) and not folds(n) for n in ast.walk(node))

    def _learn(self, name: str, value: ast.expr) -> None:
        """What is known of a variable that is assigned: what was known of the operand that it is a new version of."""
        same = self._same_as(value)
        source = same.id if isinstance(same, ast.Name) else ""
        extents, dtype = self.known.get(source), self.dtypes.get(source)
        self._forget(name)
        if extents is not None:
            self.known[name] = extents
        if dtype is not None:
            self.dtypes[name] = dtype

    def _forget(self, name: str) -> None:
        self.known.pop(name, None)
        self.dtypes.pop(name, None)

    def _same_as(self, value: ast.expr) -> ast.expr | None:
        """The operand whose type the value of a call has."""
        if not isinstance(value, ast.Call):
            return value if isinstance(value, ast.Name) else None
        at = _SAME_AS.get(_last(value.func))
        return value.args[at] if at is not None and at < len(value.args) else None


def _no_names(node: ast.expr) -> object:
    return MISSING


def _all_constant(node: ast.List) -> bool:
    return all(isinstance(e, ast.Constant) for e in node.elts)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _number_node(value: int | float | bool, at: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Constant(value), at)


def _member(at: ast.expr, name: str) -> ast.expr:
    """`self.<name>` at the place of a name."""
    return placed(ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load()), at)


def _bridge(new: str, old: str, stmt: ast.stmt) -> ast.stmt:
    made = ast.Assign([ast.Name(new, ast.Store())], ast.Name(old, ast.Load()), lineno=stmt.lineno)
    return placed(made, stmt)
