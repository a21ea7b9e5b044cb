"""From a jit function and its arguments to a program.

The entry is parsed with the types of its arguments. Another jit function is parsed when its first call is reached, with
the types the arguments have there; it is the parser that knows them, so slices, reshapes and rebindings need no rules
of their own. The program holds the entry and every function it reaches.
"""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..ir import expr as e
from ..ir import types as t
from ..ir.dtypes import INDEX
from ..ir.enums import FunctionType, Level, Role, TensorLayout
from ..ir.program import Function, Program
from ..language.parser.constants import dotted, follow
from ..language.parser.context import Ctx, ProgramContext, Signature
from ..language.parser.diagnostics import ParserError, ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ..language.parser.functions import Options, function_context, parse_function
from ..language.parser.modules import reporting
from ..language.typing import RUNTIME, DynVar
from .binding import Bound, TensorInfo
from .params import Param, local_symbols, read_params
from .rewrite import Callee, Extents, Facts, Rewriter, calls_of

if TYPE_CHECKING:
    from .decorator import JITFunction

_TYPES = {
    "orchestration": FunctionType.Orchestration,
    "incore": FunctionType.InCore,
    "inline": FunctionType.Inline,
    "opaque": FunctionType.Opaque,
    "host": FunctionType.Opaque,
}
_CORES = {Level.AIC: FunctionType.AIC, Level.AIV: FunctionType.AIV}


@dataclass
class Specialization:
    """The program, and the author's names of variables that were renamed on the way."""

    program: Program
    renamed: dict[str, str] = field(default_factory=dict)

    def in_users_words(self, text: str) -> str:
        """`text` with the author's names in place of the renamed ones."""
        if not self.renamed:
            return text
        names = "|".join(sorted(map(re.escape, self.renamed), key=len, reverse=True))
        return re.sub(rf"\b({names})(?=\b|__)", lambda m: self.renamed[m.group(1)], text)


def parameters(jit: JITFunction) -> dict[str, Param]:
    """What the source of a jit function says of its parameters.

    Raises:
        ParserError: an annotation that is none, or a parameter that is no single value.
    """
    program = ProgramContext(in_program=True)
    with reporting(program):
        return read_params(Ctx(jit.source.source, jit.source.closure, program, jit.__name__), jit.source)


@dataclass
class _Made:
    """One specialisation of a jit function: the types of its parameters, and what callers see of it."""

    types: dict[str, t.Type]
    shown: Signature
    function: Function


@dataclass
class _Use:
    """A jit function within one program."""

    jit: JITFunction
    key: str
    """The name by which rewritten bodies call it, and the name of its first specialisation."""
    params: dict[str, Param]
    spread: dict[str, dict[int, str]] = field(default_factory=dict)
    """Extents of parameters that are dynamic because they are handed to a dynamic parameter: symbols by axis."""
    made: list[_Made] = field(default_factory=list)
    busy: bool = False


class Specializer:
    """Builds one program."""

    def __init__(self, entry: JITFunction, bound: Bound) -> None:
        self.entry, self.bound = entry, bound
        self.program = ProgramContext(in_program=True)
        self.uses: dict[JITFunction, _Use] = {}
        self.names: set[str] = set()
        self.functions: list[Function] = []
        self.result = Specialization(Program((), f"_jit_{entry.__name__}"))

    def run(self) -> Specialization:
        """The specialisation.

        Raises:
            ParserError: the source is outside the language; places are those of the author's files.
        """
        try:
            with reporting(self.program):
                self._collect(self.entry)
                self._spread_dynamic()
                made = self._parse_entry()
        except ParserError as error:
            self._translate(error)
            raise
        extra = list(self.program.externals.values())
        self.result.program = Program([*self.functions, *extra], self.result.program.name, made.function.span)
        return self.result

    def _translate(self, error: ParserError) -> None:
        for one in (error, *error.related):
            one.message = self.result.in_users_words(one.message)
            one.args = (one.message, *one.args[1:])
            one.hint = None if one.hint is None else self.result.in_users_words(one.hint)
        error.attach_report()

    # functions of the program ----------------------------------------------------------------------------------------

    def _context(self, jit: JITFunction) -> Ctx:
        """A context to resolve names of one function's source in."""
        found = jit.source
        return Ctx(found.source, found.closure, self.program, jit.__name__)

    def _free(self, name: str) -> str:
        """`name`, or `name_1`, `name_2`, ... when another function of the program has it."""
        made, k = name, 0
        while made in self.names:
            k += 1
            made = f"{name}_{k}"
        self.names.add(made)
        return made

    def _collect(self, jit: JITFunction) -> None:
        if jit in self.uses:
            return
        params = read_params(self._context(jit), jit.source)
        use = self.uses[jit] = _Use(jit, self._free(jit.__name__), params)
        signature = self.program.functions[use.key] = Signature(use.key)
        signature.on_call = lambda args: self._called(use, args)
        for callee in self.callees(jit).values():
            self._collect(callee)

    def callees(self, jit: JITFunction) -> dict[str, JITFunction]:
        """Other jit functions that the source of `jit` mentions and may call, by the name it uses."""
        return {name: other for name, other in _mentioned(jit).items() if jit.may_call(other)}

    def _spread_dynamic(self) -> None:
        """A parameter that is handed to a dynamic one is dynamic itself."""
        changed = True
        while changed:
            changed = any(self._spread_from(use) for use in self.uses.values())

    def _spread_from(self, use: _Use) -> bool:
        changed = False
        callees = self.callees(use.jit)
        for node in ast.walk(use.jit.source.node):
            for name, args, keywords in calls_of(node, callees):
                theirs = self.uses[callees[name]]
                params = list(theirs.params.values())
                given = [(p, a) for p, a in zip(params, args, strict=False)]
                given += [(p, k.value) for k in keywords for p in params if p.name == k.arg]
                for param, arg in given:
                    known = {**theirs.spread.get(param.name, {}), **param.dynamic}
                    if isinstance(arg, ast.Name) and arg.id in use.params:
                        changed |= _spread_into(use, use.params[arg.id], known)
        return changed

    # parsing ---------------------------------------------------------------------------------------------------------

    def _parse_entry(self) -> _Made:
        use = self.uses[self.entry]
        types: dict[str, t.Type] = {}
        scalars: dict[str, int | float | bool] = {}
        symbols = _told_apart(use, self.bound)
        for name, info in self.bound.infos.items():
            param = use.params[name]
            if isinstance(info, TensorInfo):
                types[name] = self._tensor_type(param, info, symbols[name])
                continue
            if param.type is None:
                self._no_type(use, param)
            types[name] = param.type if param.type is not None else t.ScalarType(INDEX)
            if info is not RUNTIME:
                scalars[name] = info
        return self._parse(use, types, scalars)

    def _no_type(self, use: _Use, param: Param) -> None:
        ctx = self._context(use.jit)
        hint = f"write {param.name}: pl.Scalar[pl.INT32] (or another dtype)"
        ctx.fail(ParserTypeError, f"Parameter '{param.name}' missing type annotation", param.node, hint)

    def _tensor_type(self, param: Param, info: TensorInfo, symbols: dict[int, str]) -> t.TensorType:
        ctx = self._context(self.entry)
        dims: list[int | e.Expr] = [d if isinstance(d, int) else ctx.symbol(d) for d in info.shape]
        for axis, symbol in symbols.items():
            dims[axis] = ctx.symbol(symbol)
        view = None if param.layout is TensorLayout.ND else t.TensorView(layout=param.layout)
        return t.TensorType(tuple(dims), info.dtype, None, view)  # type: ignore[arg-type]

    def _called(self, use: _Use, args: Sequence[e.Expr]) -> None:
        """A call of another jit function has been reached: the specialisation for its arguments is what it calls."""
        ctx = self._context(use.jit)
        if use.jit.func_type == "extern":
            message = f"'{use.jit.__name__}' is a C++ kernel (@pl.jit.extern); the embedded toolchain cannot build it"
            hint = "write it with @pl.jit.incore, or use an installed PyPTO with its compiler"
            ctx.fail(UnsupportedFeatureError, message, use.jit.source.node, hint)
        if use.busy:
            message = f"jit function '{use.jit.__name__}' calls itself"
            ctx.fail(ParserSyntaxError, message, use.jit.source.node, "use a loop")
        types = {p.name: self._argument_type(ctx, p, a) for p, a in zip(use.params.values(), args, strict=True)}
        made = next((m for m in use.made if m.types == types), None) or self._parse(use, types, {})
        shown = self.program.functions[use.key]
        shown.name, shown.params, shown.return_types = made.shown.name, made.shown.params, made.shown.return_types
        shown.role, shown.function = made.shown.role, made.function

    def _argument_type(self, ctx: Ctx, param: Param, arg: e.Expr) -> t.Type:
        """The type of a parameter, from the argument of a call."""
        have = arg.type
        if isinstance(have, t.UnknownType) and param.type is None:
            raise ValueError(f"@pl.jit: missing inferred tensor metadata for parameter '{param.name}' of '{ctx.name}'")
        self._check_kind(ctx, param, have)
        if isinstance(have, t.TensorType):
            dims = [self._extent(ctx, param, k, d) for k, d in enumerate(have.shape)]
            layout = have.tensor_view.layout if have.tensor_view is not None else param.layout
            view = None if layout is TensorLayout.ND else t.TensorView(layout=layout)
            return t.TensorType(tuple(dims), have.dtype, None, view)
        return have if param.type is None else param.type

    def _check_kind(self, ctx: Ctx, param: Param, have: t.Type) -> None:
        """Refuse a number for a tensor, and a tensor for a number."""
        kind = {t.TensorType: "tensor", t.ScalarType: "scalar"}.get(type(have))
        if kind is not None and param.kind in ("tensor", "scalar") and kind != param.kind:
            message = f"parameter '{param.name}' of jit function '{ctx.name}' is a {param.kind}, a call gives {have}"
            ctx.fail(ParserTypeError, message, param.node, "pass the other kind, or drop the annotation")

    def _extent(self, ctx: Ctx, param: Param, axis: int, have: e.Expr) -> e.Expr:
        if axis in param.dynamic:
            return ctx.symbol(param.dynamic[axis])
        known = self.program.symbols.values()
        if isinstance(have, e.ConstInt) or any(have is s for s in known):
            return have
        return ctx.symbol(f"{param.name}_dim{axis}")

    def _parse(self, use: _Use, types: dict[str, t.Type], scalars: dict[str, int | float | bool]) -> _Made:
        jit, found = use.jit, use.jit.source
        node = copy.deepcopy(found.node)
        node.name = self._free(jit.__name__) if use.made else use.key
        ctx = self._context(jit)
        rewriter = Rewriter(ctx, self._facts(use, types, scalars))
        returns = _Returns(ctx, use.params).of(node)
        layer = self._annotate(node, use, types, returns)
        layer |= {k: DynVar(v) for k, v in local_symbols(ctx, node.body).items()}
        node.body = rewriter.run(node) or [ast.copy_location(ast.Pass(), node)]
        self.result.renamed |= rewriter.names.given
        options = _options(jit)
        inner = function_context(found.source, found.closure.under(layer), self.program, node, options)
        inner.comments = dict(found.comments)
        use.busy = True
        try:
            function = parse_function(inner, node, options)
        finally:
            use.busy = False
        self.functions.append(function)
        made = _Made(types, replace(self.program.functions[node.name], on_call=None), function)
        use.made.append(made)
        return made

    def _facts(self, use: _Use, types: dict[str, t.Type], scalars: dict[str, int | float | bool]) -> Facts:
        tensors = {n: x for n, x in types.items() if isinstance(x, t.TensorType)}
        extents: dict[str, Extents] = {n: [e.const_value(d) for d in x.shape] for n, x in tensors.items()}
        dtypes = {n: x.dtype.name for n, x in tensors.items()}
        mentioned = _mentioned(use.jit)
        callees = {alias: self._callee(j) for alias, j in mentioned.items() if use.jit.may_call(j)}
        return Facts(scalars, extents, dtypes, callees, mentioned.keys() - callees.keys())

    def _callee(self, jit: JITFunction) -> Callee:
        python = inspect.signature(jit.func).parameters
        defaults = {n: p.default for n, p in python.items() if isinstance(p.default, (int, float))}
        use = self.uses[jit]
        return Callee(use.key, tuple(use.params), defaults, jit.func_type == "inline")

    def _annotate(
        self, node: ast.FunctionDef, use: _Use, types: dict[str, t.Type], returns: list[ast.expr | str] | None
    ) -> dict[str, Any]:
        """Give the parameters and the result their types; these are values of the closure under hidden names."""
        node.decorator_list = []
        layer: dict[str, Any] = {}
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            key = f"_jit_type_of_{arg.arg}"
            layer[key] = types[arg.arg]
            direction = use.params[arg.arg].direction
            text = f"pl.{direction}[{key}]" if direction else key
            arg.annotation = _at(ast.parse(text, mode="eval").body, arg)
        node.args = ast.arguments(
            posonlyargs=[], args=[*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs], kwonlyargs=[],
            kw_defaults=[], defaults=[],
        )  # fmt: skip
        node.returns = None
        if returns:
            parts = [r if isinstance(r, ast.expr) else ast.Name(f"_jit_type_of_{r}", ast.Load()) for r in returns]
            whole: ast.expr = parts[0]
            if len(parts) > 1:
                whole = ast.Subscript(ast.Name("tuple", ast.Load()), ast.Tuple(parts, ast.Load()), ast.Load())
            node.returns = _at(whole, node)
        return layer


def _options(jit: JITFunction) -> Options:
    kind = jit.func_type
    if kind == "host":
        return Options(FunctionType.Opaque, Level.HOST, Role.Orchestrator, auto_scope=jit.auto_scope)
    if kind == "incore" and jit.level in _CORES:
        return Options(_CORES[jit.level])
    return Options(_TYPES[kind], auto_scope=jit.auto_scope)


def _mentioned(jit: JITFunction) -> dict[str, JITFunction]:
    """Jit functions that names in the source of `jit` mean."""
    from .decorator import JITFunction

    local = {a.arg for a in jit.source.params} | _assigned(jit.source.node)
    closure = jit.source.closure
    found: dict[str, JITFunction] = {}
    for node in ast.walk(jit.source.node):
        name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        root, *rest = (name or "").split(".")
        if name is None or root in local or name in found:
            continue
        value = follow(closure.get(root), rest)
        if isinstance(value, JITFunction):
            found[name] = value
    return found


def _assigned(node: ast.FunctionDef) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _spread_into(use: _Use, param: Param, symbols: dict[int, str]) -> bool:
    """Note that axes of a parameter are dynamic; true when that is news."""
    known = use.spread.setdefault(param.name, {})
    new = {axis: s for axis, s in symbols.items() if axis not in known and axis not in param.dynamic}
    known.update(new)
    return bool(new)


def _told_apart(use: _Use, bound: Bound) -> dict[str, dict[int, str]]:
    """Symbols of the dynamic extents of an entry, by parameter and axis.

    A symbol that came from a helper stands for one extent only: parameters whose samples differ get symbols of their
    own (`M`, `M_1`), because the helper may be called with each of them.
    """
    sizes: dict[str, list[int | None]] = {}
    found: dict[str, dict[int, str]] = {}
    tensors = [(use.params[n], i) for n, i in bound.infos.items() if isinstance(i, TensorInfo)]
    for param, info in tensors:
        for axis, symbol in param.dynamic.items():
            sizes.setdefault(symbol, [info.size(axis)])
    for param, info in tensors:
        mine = found[param.name] = dict(param.dynamic)
        for axis, symbol in use.spread.get(param.name, {}).items():
            known = sizes.setdefault(symbol, [])
            if info.size(axis) not in known:
                known.append(info.size(axis))
            k = known.index(info.size(axis))
            mine[axis] = f"{symbol}_{k}" if k else symbol
    return found


def _at(node: ast.expr, place: ast.AST) -> ast.expr:
    for inner in ast.walk(node):
        if "lineno" in inner._attributes:
            ast.copy_location(inner, place)
    return node


@dataclass
class _Returns:
    """What a jit function declares to return."""

    ctx: Ctx
    params: dict[str, Param]

    def of(self, node: ast.FunctionDef) -> list[ast.expr | str] | None:
        """Annotations, or names of parameters whose type is returned; None for no declaration.

        An explicit annotation of a scalar stays. Otherwise the first `return` decides: parameters and annotated
        variables by their type, a call by nothing, anything else by the first Out parameter.
        """
        if node.returns is not None and self._is_scalar(node.returns):
            return [node.returns]
        value = next((n.value for n in ast.walk(node) if isinstance(n, ast.Return)), None)
        if value is None or isinstance(value, ast.Call):
            return None
        parts = list(value.elts) if isinstance(value, ast.Tuple) else [value]
        annotated = {
            n.target.id: n.annotation
            for n in ast.walk(node)
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        }
        found = [self._part(p, annotated) for p in parts]
        if all(f is not None for f in found):
            return [f for f in found if f is not None]
        if isinstance(value, ast.Tuple):
            return None
        out = next((p.name for p in self.params.values() if p.direction), None)
        return None if out is None else [out]

    def _part(self, node: ast.expr, annotated: dict[str, ast.expr]) -> ast.expr | str | None:
        if not isinstance(node, ast.Name):
            return None
        param = self.params.get(node.id)
        if param is not None and param.kind == "tensor":
            return node.id
        return annotated.get(node.id)

    def _is_scalar(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Subscript):
            return False
        path = self.ctx.path(node.value)
        return path is not None and path[1] == "Scalar"
