"""State shared by the parts of the parser while one function is read, and the dispatch tables they fill."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from ...ir import expr as e
from ...ir.dtypes import FP32, INDEX, DataType, fitting
from ...ir.enums import FunctionType, Level, Role, SplitMode
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import SeqStmts, Stmt
from ...ir.types import PtrType, ScalarType, Type
from .constants import constant_of, dotted, follow
from .diagnostics import ParserError, ParserSyntaxError, ParserTypeError, UndefinedVariableError
from .names import MISSING, Closure, Scopes
from .text import Source

Value: TypeAlias = Any
"""What an expression parses to: an `Expr`, a Python number (a literal or folded constant), or a list of such."""

MAX_ERRORS = 20
LANGUAGE_MODULES = {"pypto.language": "pl", "pypto.language.distributed": "pld"}
INDEX_TYPE = ScalarType(INDEX)
TOO_BIG = "integers are -2**63 .. 2**64 - 1"
INT_MIN, INT_MAX = -(2**63), 2**64 - 1


@dataclass(slots=True)
class Signature:
    """What callers know of a function of the program."""

    name: str
    params: tuple[e.Var, ...] | None = None
    return_types: tuple[Type, ...] | None = None
    role: Role | None = None
    function: Function | None = None
    on_call: Callable[[Sequence[e.Expr]], None] | None = None
    """Called with the arguments of every call, before the signature is used: jit functions are specialised by it."""


@dataclass
class ProgramContext:
    """State of one text: functions seen so far, symbols by name, errors."""

    functions: dict[str, Signature] = field(default_factory=dict)
    externals: dict[str, Function] = field(default_factory=dict)
    """Module-level functions that methods called by bare name; they become part of the program."""
    symbols: dict[str, e.Var] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=lambda: {"pl": "pl", "pld": "pld"})
    """Names that mean the language modules."""
    errors: list[ParserError] = field(default_factory=list)
    printed: bool = False
    """The text is in printed form: calls are in IR layout, annotations decide."""
    free_names: str = "error"
    open_calls: bool = False
    """Calls of functions that the text does not define are accepted."""
    in_program: bool = False
    strict: bool = False
    live: bool = False
    """Running code applied a decorator: Python knows every name, so an unknown one is no dynamic extent."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Names that statements of the text would define if it were run, and their lines."""
    constants: dict[str, Any] = field(default_factory=dict)
    """Dotted constants looked up so far."""


@dataclass(slots=True)
class LoopFrame:
    """An enclosing loop: its kind ("range", "parallel", "unroll", "pipeline", "while", "split_aiv", "spmd")."""

    kind: str


@dataclass(slots=True)
class YieldFrame:
    """Collects the yields of one loop body or branch: names in order, and their annotations."""

    names: list[str] = field(default_factory=list)
    annotations: dict[str, Type] = field(default_factory=dict)
    values: dict[str, e.Expr] = field(default_factory=dict)
    bare: bool = False


@dataclass
class Ctx:
    """State of one function being parsed."""

    source: Source
    closure: Closure
    program: ProgramContext
    name: str = ""
    func_type: FunctionType = FunctionType.Opaque
    level: Level | None = None
    role: Role | None = None
    auto_scope: bool = True
    strict: bool = False
    scopes: Scopes = field(default_factory=Scopes)
    out: list[Stmt] = field(default_factory=list)
    bases: dict[str, e.Var] = field(default_factory=dict)
    declared: dict[str, e.MemRef] = field(default_factory=dict)
    memref_owners: dict[str, e.MemRef] = field(default_factory=dict)
    loops: list[LoopFrame] = field(default_factory=list)
    yields: list[YieldFrame] = field(default_factory=list)
    scope_stack: list[str] = field(default_factory=list)
    split_mode: SplitMode | None = None
    """Mode of the enclosing split_aiv region."""
    comments: dict[int, str] = field(default_factory=dict)
    pending_comments: list[str] = field(default_factory=list)
    params: tuple[e.Var, ...] = ()
    dumps: list[e.Var] = field(default_factory=list)
    used_symbols: set[str] = field(default_factory=set)
    """Dynamic extents that the function's types so far mention."""
    symbol_params: dict[str, e.Var] = field(default_factory=dict)
    """Scalar parameters that are dynamic extents."""
    loop_vars: set[e.Var] = field(default_factory=set)
    branch_names: set[str] = field(default_factory=set)
    """Names assigned in a branch of an if that is still open: its sibling must give them the same type."""
    poisoned: set[str] = field(default_factory=set)
    """Names whose definition was refused; their uses are not reported again."""
    want: Type | None = None
    """Annotated type of the call being parsed, where the annotation decides."""
    inline_depth: int = 0
    inline_returns: list[tuple[e.Expr, ...]] | None = None
    """Collects the returned values while the body of an inline function is spliced."""

    # -- places and errors ------------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        """The place of a node."""
        return self.source.span(node)

    def fail(
        self, cls: type[ParserError], message: str, node: ast.AST | None = None, hint: str | None = None, **rest: Any
    ) -> NoReturn:
        """Raise a parser error at `node`."""
        raise self.error(cls, message, node, hint, **rest)

    def error(
        self, cls: type[ParserError], message: str, node: ast.AST | None = None, hint: str | None = None, **rest: Any
    ) -> ParserError:
        """A parser error at `node`, with the lines of its file."""
        span = None if node is None else self.span(node)
        made = cls(message, span, hint=hint, **rest)
        made.source_lines = self.source.lines_of(span.filename) if span is not None else self.source.file_lines
        return made

    def wrong(self, message: object, node: ast.AST, hint: str | None = None) -> NoReturn:
        """Raise for an operand that the IR refuses, in the form `Failed to parse function 'f': ...`."""
        self.fail(ParserSyntaxError, f"Failed to parse function '{self.name}': {message}", node, hint)

    def record(self, error: ParserError) -> None:
        """Keep an error and go on; poisoned ones only follow from another and are dropped.

        Raises:
            ParserError: there are too many.
        """
        if error.poisoned:
            return
        self.program.errors.append(error)
        if len(self.program.errors) >= MAX_ERRORS:
            raise error

    # -- expressions ------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        """What `node` means: an expression, or a Python number when it is a literal or a folded constant."""
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            from .expressions import unsupported

            unsupported(self, node)
        return handler(self, node)

    def expr(self, node: ast.expr) -> e.Expr:
        """`value` as an IR expression."""
        value = self.value(node)
        return value if isinstance(value, e.Expr) else self.lift(value, node)

    def fitting(self, value: int, dtype: DataType, node: ast.AST) -> int:
        """An integer written for a place of type `dtype`; it must be one of its values."""
        try:
            return fitting(value, dtype)
        except ValueError as exc:
            problem, _, same = str(exc).partition("; ")
            self.fail(ParserTypeError, problem, node, same or "write a value of that range, or a wider dtype")

    def lift(self, value: Value, node: ast.AST) -> e.Expr:
        """A Python number or list as an IR expression: INDEX, FP32, BOOL constants, tuples."""
        if isinstance(value, e.Expr):
            return value
        span = self.span(node)
        kind = type(value)
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:
                self.fail(ParserTypeError, "integer constant does not fit in 64 bits", node, TOO_BIG)
            return e.ConstInt(value, INDEX, span)
        if kind is float:
            return e.ConstFloat(value, FP32, span)
        if kind is bool:
            return e.ConstBool(value, span)
        if kind is list or kind is tuple:
            return e.MakeTuple(tuple(self.lift(v, node) for v in value), span)
        self.fail(
            ParserTypeError,
            f"a {kind.__name__} is no value of the language",
            node,
            "use a variable, a number, a list of numbers or an operator call",
        )

    # -- names ------------------------------------------------------------------------------------------------------

    def path(self, node: ast.expr) -> tuple[str, str] | None:
        """("pl", "tile.load") for a dotted name of a language module, else None."""
        text = dotted(node)
        if text is None:
            return None
        root, _, rest = text.partition(".")
        alias = self.program.aliases.get(root)
        if alias is None:
            alias, rest = self._module_alias(root, rest)
            if alias is None:
                return None
        if alias == "pl" and rest.startswith("distributed."):
            return "pld", rest[len("distributed.") :]
        return alias, rest

    def _module_alias(self, root: str, rest: str) -> tuple[str | None, str]:
        """The language module that `root` (or `pypto.language`, spelled out) means, and the names after it."""
        from types import ModuleType

        value = self.closure.get(root)
        name = value.__name__.removeprefix("pytest_pypto.") if isinstance(value, ModuleType) else ""
        if root == "pypto" and (value is MISSING or name == "pypto") and rest.startswith("language."):
            return "pl", rest[len("language.") :]
        return LANGUAGE_MODULES.get(name), rest

    def constant(self, node: ast.expr) -> Any:
        """The Python value of a name or dotted name that is no DSL variable, or `MISSING`."""
        text = dotted(node)
        if text is None:
            return MISSING
        cache = self.program.constants
        found = cache.get(text, cache)
        if found is not cache:
            return found
        root, _, rest = text.partition(".")
        local = self.scopes.find(root)
        if local is not None:
            return local if not rest and not isinstance(local, e.Expr) else MISSING
        path = self.path(node) if rest else None
        value = constant_of(path[1]) if path is not None else MISSING
        if path is not None and value is not MISSING:
            cache[text] = value
            return value
        outer = self.closure.get(root)
        if outer is MISSING:
            return constant_of(text) if rest or path is None else MISSING
        return follow(outer, rest.split(".")) if rest else outer

    def undefined(self, name: str, node: ast.AST) -> NoReturn:
        """Raise for an unknown name, with a near match when there is one."""
        import difflib

        error = self.error(
            UndefinedVariableError, f"Undefined variable '{name}'", node, "assign it before, or define it outside"
        )
        if name in self.poisoned:
            error.poisoned = True
        near = difflib.get_close_matches(name, list(dict.fromkeys(self.scopes.visible())), n=1)
        if near:
            error.hint = f"did you mean '{near[0]}'?"
        if name in self.program.skipped:
            error.hint = f"line {self.program.skipped[name]} defines '{name}', but text is read without being run"
            error.hint += ": write a plain constant, or import the file as a module"
        raise error

    def symbol(self, name: str) -> e.Var:
        """The dynamic extent called `name`, made on first use."""
        found = self.program.symbols.get(name)
        if found is None:
            found = self.program.symbols[name] = e.Var(name, INDEX_TYPE)
        return found

    def base(self, name: str) -> e.Var:
        """The allocation called `name`, made on first use."""
        found = self.bases.get(name)
        if found is None:
            found = self.bases[name] = e.Var(name, PtrType.get())
        return found

    def define(self, name: str, type_: Type, node: ast.AST) -> e.Var:
        """A fresh variable, bound in the innermost scope."""
        var = e.Var(name, type_, self.span(node))
        self.scopes.define(name, var)
        self.poisoned.discard(name)
        return var

    def poison(self, names: Iterable[str]) -> None:
        """Remember names whose definition failed and that nothing else defines."""
        self.poisoned.update(n for n in names if self.scopes.find(n) is None)

    # -- statements -------------------------------------------------------------------------------------------------

    def emit(self, stmt: Stmt) -> None:
        """Append a statement; pending comments go to it."""
        if self.pending_comments:
            object.__setattr__(stmt, "leading_comments", tuple(self.pending_comments))
            self.pending_comments.clear()
        self.out.append(stmt)

    def block(self, body: list[ast.stmt], node: ast.AST | None = None) -> SeqStmts:
        """Parse statements into a sequence of their own."""
        from .statements import parse_body

        outer, self.out = self.out, []
        try:
            parse_body(self, body)
            made = tuple(self.out)
        finally:
            self.out = outer
        return SeqStmts(made, self.span(node) if node is not None else Span.unknown())

    def temp(self, base: str) -> str:
        """A name for a hidden variable."""
        return base


ExprHandler: TypeAlias = Callable[[Ctx, Any], Value]
StmtHandler: TypeAlias = Callable[[Ctx, Any], None]
EXPRESSIONS: dict[type[ast.expr], ExprHandler] = {}
STATEMENTS: dict[type[ast.stmt], StmtHandler] = {}
