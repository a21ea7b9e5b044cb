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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..ir import expr as e
from ..ir import types as t
from ..ir.dtypes import INDEX
from ..ir.enums import FunctionType, Level, Role, TensorLayout
from ..ir.program import Function, Program
from ..ir.span import UNKNOWN
from ..language.parser.context import Ctx, ProgramContext, Signature
from ..language.parser.diagnostics import ParserError, ParserSyntaxError, ParserTypeError
from ..language.parser.functions import Options, function_context, parse_function
from ..language.parser.modules import reporting
from ..language.typing import RUNTIME, DynVar
from .binding import Bound, TensorInfo
from .params import Param, local_symbols, read_params
from .rewrite import Callee, Extents, Facts, Rewriter

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


@dataclass
class _Use:
    """A jit function within one program."""

    jit: JITFunction
    params: dict[str, Param]
    function: Function | None = None
    types: dict[str, t.Type] = field(default_factory=dict)
    place: str = ""
    busy: bool = False


class Specializer:
    """Builds one program."""

    def __init__(self, entry: JITFunction, bound: Bound) -> None:
        self.entry, self.bound = entry, bound
        self.program = ProgramContext(in_program=True)
        self.uses: dict[str, _Use] = {}
        self.result = Specialization(Program((), f"_jit_{entry.__name__}"))

    def run(self) -> Specialization:
        """The specialisation.

        Raises:
            ParserError: the source is outside the language; places are those of the author's files.
            ValueError: two different jit functions of one name.
        """
        try:
            with reporting(self.program):
                self._collect(self.entry)
                self._spread_dynamic()
                self._parse_entry()
        except ParserError as error:
            self._translate(error)
            raise
        functions = [u.function for u in self.uses.values() if u.function is not None]
        span = self.uses[self.entry.__name__].function
        extra = list(self.program.externals.values())
        name = self.result.program.name
        self.result.program = Program([*functions, *extra], name, span.span if span else UNKNOWN)
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

    def _collect(self, jit: JITFunction) -> None:
        known = self.uses.get(jit.__name__)
        if known is not None:
            if known.jit is not jit:
                raise ValueError(f"two jit functions are called '{jit.__name__}' in one program; rename one of them")
            return
        ctx = self._context(jit)
        self.uses[jit.__name__] = _Use(jit, read_params(ctx, jit.source.params, jit.source.node.body))
        signature = Signature(jit.__name__)
        signature.on_call = lambda args: self._called(jit.__name__, args)
        self.program.functions[jit.__name__] = signature
        for callee in self.callees(jit).values():
            self._collect(callee)

    def callees(self, jit: JITFunction) -> dict[str, JITFunction]:
        """Other jit functions that the source of `jit` mentions, by the name it uses."""
        from .decorator import JITFunction

        found: dict[str, JITFunction] = {}
        for node in ast.walk(jit.source.node):
            if isinstance(node, ast.Name) and node.id not in found:
                value = jit.source.closure.get(node.id)
                if isinstance(value, JITFunction) and value is not jit and jit.may_call(value):
                    found[node.id] = value
        return found

    def _spread_dynamic(self) -> None:
        """A parameter that is handed to a dynamic one is dynamic itself."""
        changed = True
        while changed:
            changed = any(self._spread_from(use) for use in self.uses.values())

    def _spread_from(self, use: _Use) -> bool:
        changed = False
        callees = self.callees(use.jit)
        for node in ast.walk(use.jit.source.node):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in callees:
                continue
            theirs = list(self.uses[callees[node.func.id].__name__].params.values())
            given = [(p, a) for p, a in zip(theirs, node.args, strict=False)]
            given += [(p, k.value) for k in node.keywords for p in theirs if p.name == k.arg]
            for param, arg in given:
                mine = use.params.get(arg.id) if isinstance(arg, ast.Name) else None
                if mine is not None and not param.dynamic.keys() <= mine.dynamic.keys():
                    mine.dynamic.update({k: v for k, v in param.dynamic.items() if k not in mine.dynamic})
                    changed = True
        return changed

    # parsing ---------------------------------------------------------------------------------------------------------

    def _parse_entry(self) -> None:
        use = self.uses[self.entry.__name__]
        types: dict[str, t.Type] = {}
        scalars: dict[str, int | float | bool] = {}
        for name, info in self.bound.infos.items():
            param = use.params[name]
            if isinstance(info, TensorInfo):
                types[name] = self._tensor_type(param, info)
                continue
            if param.type is None:
                self._no_type(use, param)
            types[name] = param.type if param.type is not None else t.ScalarType(INDEX)
            if info is not RUNTIME:
                scalars[name] = info
        self._parse(use, types, scalars)

    def _no_type(self, use: _Use, param: Param) -> None:
        ctx = self._context(use.jit)
        hint = f"write {param.name}: pl.Scalar[pl.INT32] (or another dtype)"
        ctx.fail(ParserTypeError, f"Parameter '{param.name}' missing type annotation", param.node, hint)

    def _tensor_type(self, param: Param, info: TensorInfo) -> t.TensorType:
        ctx = self._context(self.entry)
        dims: list[int | e.Expr] = [d if isinstance(d, int) else ctx.symbol(d) for d in info.shape]
        for axis, symbol in param.dynamic.items():
            dims[axis] = ctx.symbol(symbol)
        view = None if param.layout is TensorLayout.ND else t.TensorView(layout=param.layout)
        return t.TensorType(tuple(dims), info.dtype, None, view)  # type: ignore[arg-type]

    def _called(self, name: str, args: Sequence[e.Expr]) -> None:
        """A call of another jit function has been reached: specialise it, or check that it fits."""
        use = self.uses[name]
        ctx = self._context(use.jit)
        if use.busy:
            ctx.fail(ParserSyntaxError, f"jit function '{name}' calls itself", use.jit.source.node, "use a loop")
        types = {p.name: self._argument_type(ctx, p, a) for p, a in zip(use.params.values(), args, strict=True)}
        if use.function is None:
            self._parse(use, types, {})
        else:
            self._check_same(ctx, use, types)

    def _argument_type(self, ctx: Ctx, param: Param, arg: e.Expr) -> t.Type:
        """The type of a parameter, from the argument of a call."""
        have = arg.type
        if isinstance(have, t.TensorType):
            dims = [self._extent(ctx, param, k, d) for k, d in enumerate(have.shape)]
            layout = have.tensor_view.layout if have.tensor_view is not None else param.layout
            view = None if layout is TensorLayout.ND else t.TensorView(layout=layout)
            return t.TensorType(tuple(dims), have.dtype, None, view)
        if param.type is not None:
            return param.type
        if isinstance(have, t.UnknownType):
            raise ValueError(f"@pl.jit: missing inferred tensor metadata for parameter '{param.name}' of '{ctx.name}'")
        return have

    def _extent(self, ctx: Ctx, param: Param, axis: int, have: e.Expr) -> e.Expr:
        if axis in param.dynamic:
            return ctx.symbol(param.dynamic[axis])
        known = self.program.symbols.values()
        if isinstance(have, e.ConstInt) or any(have is s for s in known):
            return have
        return ctx.symbol(f"{param.name}_dim{axis}")

    def _check_same(self, ctx: Ctx, use: _Use, types: dict[str, t.Type]) -> None:
        for name, type_ in types.items():
            first = use.types[name]
            if isinstance(type_, t.TensorType) and type_ != first:
                ctx.fail(
                    ParserTypeError,
                    f"jit function '{use.jit.__name__}' is specialised once per program: parameter '{name}' was "
                    f"{first} at its first call and is {type_} at another",
                    use.params[name].node,
                    "write a second function for the other shape, or declare the extent dynamic with bind_dynamic",
                )

    def _parse(self, use: _Use, types: dict[str, t.Type], scalars: dict[str, int | float | bool]) -> None:
        use.types, use.busy = types, True
        jit, found = use.jit, use.jit.source
        node = copy.deepcopy(found.node)
        ctx = self._context(jit)
        rewriter = Rewriter(ctx, self._facts(use, types, scalars))
        returns = _Returns(ctx, use.params).of(node)
        layer = self._annotate(node, use, types, returns)
        layer |= {k: DynVar(v) for k, v in local_symbols(ctx, node.body).items()}
        node.body = rewriter.run(node) or [ast.copy_location(ast.Pass(), node)]
        self.result.renamed |= rewriter.names.given
        options = _options(jit)
        inner = function_context(found.source, found.closure.under(layer), self.program, node, options)
        inner.comments = found.comments
        use.function = parse_function(inner, node, options)
        use.busy = False

    def _facts(self, use: _Use, types: dict[str, t.Type], scalars: dict[str, int | float | bool]) -> Facts:
        tensors = {n: x for n, x in types.items() if isinstance(x, t.TensorType)}
        extents: dict[str, Extents] = {n: [e.const_value(d) for d in x.shape] for n, x in tensors.items()}
        dtypes = {n: x.dtype.name for n, x in tensors.items()}
        callees = {alias: self._callee(j) for alias, j in self.callees(use.jit).items()}
        return Facts(scalars, extents, dtypes, callees)

    def _callee(self, jit: JITFunction) -> Callee:
        python = inspect.signature(jit.func).parameters
        defaults = {n: p.default for n, p in python.items() if isinstance(p.default, (int, float))}
        return Callee(jit.__name__, tuple(self.uses[jit.__name__].params), defaults)

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
