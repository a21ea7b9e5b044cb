"""Texts: from module text to the one function or program in it. Nothing in the text is ever executed.

A text is imports, constants (`N = 4`, `D = pl.dynamic("D")`, lists, dtypes, MemRefs, classes of constants), functions
decorated with `@pl.function`/`@pl.inline`, and classes decorated with `@pl.program`. Any other statement at module
level is passed over; using a name that it would have defined is an error that says so.
"""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...ir.program import Function, Program
from ...ir.span import Span
from . import values
from .constants import NotConstant, evaluate
from .context import LANGUAGE_MODULES, Ctx, ProgramContext, Signature
from .diagnostics import ParserError, ParserSyntaxError, UnsupportedFeatureError, authors_error
from .functions import bool_option, decorator_of, function_context, options_of, parse_function
from .names import MISSING, Closure
from .text import Source, SourceMap, check_bounds, comments_of, line_of, refused

HEADER = "# pypto.program:"


@dataclass
class Module:
    """A text on its way: what has been defined so far."""

    source: Source
    tree: ast.Module
    program: ProgramContext
    names: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Function | Program] = field(default_factory=dict)
    comments: dict[int, str] = field(default_factory=dict)


def parse(
    code: str, filename: str = "<string>", source_map: SourceMap | None = None, free_names: str = "error"
) -> Function | Program:
    """The one `@pl.function` or `@pl.program` that a text defines. The text is read, never executed.

    Args:
        filename: name used in error messages.
        source_map: generated line -> (file, line, column) of the place it stands for.
        free_names: "error", or "symbols" to admit names marked as free in broken dumps.

    Raises:
        SyntaxError: the text is no Python.
        ValueError: it defines none, or several.
        ParserError: it is outside the language.
    """
    __tracebackhide__ = authors_error
    try:
        found = parse_all(code, filename, source_map, free_names)
    except ParserError as error:
        raise error.with_traceback(None) from None
    if not found:
        raise ValueError(
            f"No @pl.function or @pl.program found in {filename}. Make sure your code contains a function decorated "
            "with @pl.function or a class decorated with @pl.program."
        )
    if len(found) > 1:
        raise ValueError(
            f"Multiple functions/programs found in {filename}: {list(found)}. Keep one, or put the functions into one "
            "class decorated with @pl.program."
        )
    return next(iter(found.values()))


def _is_printed(code: str, tree: ast.Module) -> bool:
    """True for what the printer writes: a program under its header line, or one function and nothing else."""
    return code.startswith(HEADER) or (len(tree.body) == 1 and isinstance(tree.body[0], ast.FunctionDef))


def parse_all(
    code: str,
    filename: str = "<string>",
    source_map: SourceMap | None = None,
    free_names: str = "error",
    open_calls: bool = False,
) -> dict[str, Function | Program]:
    """Every function and program of a text, by name (functions that a program took up are left out).

    With `open_calls` a function may call others that the text does not define.

    Raises:
        SyntaxError: the text is no Python.
        ParserError: it is outside the language.
    """
    code = code.removeprefix("\ufeff")
    tree = _tree(code, filename)
    source = Source(code, filename, source_map=source_map)
    program = ProgramContext(printed=_is_printed(code, tree), free_names=free_names, open_calls=open_calls)
    module = Module(source, tree, program, comments=comments_of(source, tree))
    with reporting(program):
        for node in tree.body:
            _statement(module, node)
    _check_rest(tree, code, filename)
    used = {f.name for p in module.found.values() if isinstance(p, Program) for f in p.functions.values()}
    return {k: v for k, v in module.found.items() if isinstance(v, Program) or k not in used}


class reporting:
    """Turns what happens inside into one parser error with all others attached."""

    def __init__(self, program: ProgramContext) -> None:
        self.program = program

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        errors = self.program.errors
        if isinstance(error, RecursionError):
            raise _too_deep(error) from None
        if isinstance(error, ParserError) and not error.poisoned and error not in errors:
            errors.append(error)
        elif error is not None and not isinstance(error, ParserError):
            return
        if not errors:
            return
        errors.sort(key=_order)
        first = errors[0]
        first.related = tuple(errors[1:])
        first.attach_report()
        raise first.with_traceback(None) from None


def _too_deep(error: RecursionError) -> ParserError:
    """The error for a statement that is nested too deeply, at its place when the traceback still knows it."""
    message, hint = "the text is nested too deeply for the parser", "name inner expressions, or split the function"
    trace = error.__traceback__
    while trace is not None:
        names = trace.tb_frame.f_locals
        if trace.tb_frame.f_code.co_name == "parse_body" and isinstance(names.get("ctx"), Ctx):
            made: ParserError = names["ctx"].error(ParserSyntaxError, message, names.get("node"), hint)
            made.attach_report()
            return made
        trace = trace.tb_next
    return ParserSyntaxError(message, hint=hint)


def _order(error: ParserError) -> tuple[int, int]:
    return (error.span["line"], error.span["column"]) if error.span else (0, 0)


def _tree(code: str, filename: str) -> ast.Module:
    check_bounds(code, filename)
    try:
        return ast.parse(code, filename)
    except SyntaxError as exc:
        raise _syntax_error(exc, code, filename) from None
    except (RecursionError, MemoryError):
        raise ParserSyntaxError(f"{filename} is nested too deeply for the parser") from None
    except UnicodeEncodeError as exc:
        raise refused(code, filename, exc.start, "half of a surrogate pair in the text", "save it as UTF-8") from None
    except ValueError as exc:
        raise ParserSyntaxError(f"{filename}: {exc}") from None


def _check_rest(tree: ast.Module, code: str, filename: str) -> None:
    """What Python finds wrong only after its grammar: a repeated keyword, `return` outside a function.

    The code object is thrown away.
    """
    try:
        compile(tree, filename, "exec", dont_inherit=True)
    except SyntaxError as exc:
        raise _syntax_error(exc, code, filename) from None
    except (RecursionError, MemoryError, ValueError):
        return


def _syntax_error(exc: SyntaxError, code: str, filename: str) -> SyntaxError:
    message = f"Failed to compile code from {filename}: {exc.msg}"
    return SyntaxError(message, (filename, exc.lineno, exc.offset, exc.text or line_of(code, exc.lineno), *_end(exc)))


def _end(exc: SyntaxError) -> tuple[int | None, int | None]:
    return exc.end_lineno, exc.end_offset


# module level ------------------------------------------------------------------------------------------------------


def _statement(module: Module, node: ast.stmt) -> None:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        _import(module, node)
    elif isinstance(node, ast.ClassDef):
        _class(module, node)
    elif isinstance(node, ast.FunctionDef):
        _function(module, node)
    elif isinstance(node, ast.AsyncFunctionDef):
        _no_async(_context(module), node)
        _skip(module, node)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        _constant(module, node)
    else:
        _skip(module, node)


def _import(module: Module, node: ast.Import | ast.ImportFrom) -> None:
    for alias in node.names:
        bound = alias.asname or alias.name.split(".")[0]
        full = alias.name
        if isinstance(node, ast.ImportFrom):
            full = f"{node.module or ''}.{alias.name}"
        elif alias.asname is None and "." in alias.name:
            full = bound
        full = full.removeprefix("pytest_pypto.")
        module.program.aliases.pop(bound, None)
        module.names.pop(bound, None)
        value = values.imported(full.rpartition(".")[2]) if full.startswith("pypto.") else MISSING
        if full in LANGUAGE_MODULES:
            module.program.aliases[bound] = LANGUAGE_MODULES[full]
        elif value is not MISSING:
            module.names[bound] = value
        else:
            module.program.skipped[bound] = node.lineno


def _context(module: Module) -> Ctx:
    return Ctx(module.source, Closure(module.names), module.program)


def _no_async(ctx: Ctx, node: ast.AsyncFunctionDef) -> None:
    """Refuse a decorated `async def`."""
    if decorator_of(node, "function", "inline", "program"):
        ctx.fail(UnsupportedFeatureError, f"'{node.name}' is an async function", node, "write def")


def _class(module: Module, node: ast.ClassDef) -> None:
    decorator = decorator_of(node, "program")
    if decorator is None:
        if decorator_of(node, "function", "inline"):
            hint = "decorate the class with @pl.program and its methods with @pl.function"
            _context(module).fail(ParserSyntaxError, f"'{node.name}' is a class, not a function", node, hint)
        module.names[node.name] = SimpleNamespace(**_members(module, node))
        return
    ctx = _context(module)
    strict = _strict_option(ctx, decorator)
    closure = with_members(ctx, node, _members(module, node))
    made = parse_program_class(module.source, closure, module.program, node, strict, module.comments)
    module.found[node.name] = made
    module.names[node.name] = made


def _members(module: Module, node: ast.ClassDef) -> dict[str, Any]:
    """The constants that a class body defines."""
    members = {}
    for stmt in node.body:
        target = stmt.targets[0] if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 else None
        target = stmt.target if isinstance(stmt, ast.AnnAssign) else target
        if isinstance(target, ast.Name) and isinstance(stmt, (ast.Assign, ast.AnnAssign)) and stmt.value:
            value = _value(module, stmt.value)
            if value is not MISSING:
                members[target.id] = value
    return members


def with_members(ctx: Ctx, node: ast.ClassDef, members: dict[str, Any]) -> Closure:
    """The closure of a program's methods: constants of its class join the names from outside.

    Raises:
        ParserError: a name means one thing in the class and another outside (annotations see the first, bodies the
            second).
    """
    for name, value in members.items():
        outer = ctx.closure.get(name)
        if outer is not MISSING and outer is not value and not _same(outer, value):
            message = f"'{name}' is {value!r} in class '{node.name}' and {outer!r} outside"
            ctx.fail(ParserSyntaxError, message, node, "rename one")
    return ctx.closure.under(members)


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and isinstance(a, (int, float, str, list, tuple)) and bool(a == b)


def _strict_option(ctx: Ctx, decorator: ast.expr) -> bool:
    """The one option of `@pl.program`."""
    strict = False
    if isinstance(decorator, ast.Call):
        hint = "write @pl.program, or @pl.program(strict_ssa=True)"
        if decorator.args:
            ctx.fail(ParserSyntaxError, "@pl.program takes keyword arguments only", decorator.args[0], hint)
        for keyword in decorator.keywords:
            if keyword.arg != "strict_ssa":
                message = f"Unknown keyword argument '{keyword.arg or '**'}' in @pl.program"
                ctx.fail(ParserSyntaxError, message, keyword, hint)
            strict = bool_option(ctx, keyword.value, "strict_ssa")
    return strict


def parse_program_class(
    source: Source,
    closure: Closure,
    program: ProgramContext,
    node: ast.ClassDef,
    strict: bool,
    comments: dict[int, str],
) -> Program:
    """The program that a class describes.

    Raises:
        ParserError: no `@pl.function` method, or two of one name.
    """
    program.strict, program.in_program = strict, True
    ctx = Ctx(source, closure, program, node.name)
    for member in node.body:
        if isinstance(member, ast.AsyncFunctionDef):
            _no_async(ctx, member)
    methods = [m for m in node.body if isinstance(m, ast.FunctionDef) and decorator_of(m, "function")]
    if not methods:
        message = f"Class '{node.name}' has no @pl.function methods"
        ctx.fail(ParserSyntaxError, message, node, "decorate its methods with @pl.function")
    program.functions.clear()
    for method in methods:
        if method.name in program.functions:
            ctx.fail(ParserSyntaxError, f"two methods called '{method.name}' in '{node.name}'", method, "rename one")
        program.functions[method.name] = Signature(method.name)
    functions: list[Function] = []
    for method in methods:
        decorator = decorator_of(method, "function")
        assert decorator is not None
        try:
            options = options_of(ctx, decorator)
            if options.external_source is not None and os.path.exists(source.filename):
                base = os.path.dirname(source.filename)
                options.external_source = os.path.normpath(os.path.join(base, options.external_source))
            inner = function_context(source, closure, program, method, options)
            inner.comments = comments
            functions.append(parse_function(inner, method, options))
        except ParserError as error:
            ctx.record(error)
    extra = [f for name, f in program.externals.items() if name not in {g.name for g in functions}]
    program.in_program = False
    return Program([*functions, *extra], node.name, ctx.span(node))


def _function(module: Module, node: ast.FunctionDef) -> None:
    inline = decorator_of(node, "inline")
    if inline is not None:
        module.names[node.name] = values.inline_function(module.source, node, Closure(module.names))
        return
    decorator = decorator_of(node, "function")
    if decorator is None:
        if decorator_of(node, "program"):
            message = f"@pl.program is for classes, '{node.name}' is a function"
            _context(module).fail(ParserSyntaxError, message, node, "decorate functions with @pl.function")
        _skip(module, node)
        return
    ctx = _context(module)
    options = options_of(ctx, decorator)
    inner = function_context(module.source, Closure(module.names), module.program, node, options)
    inner.comments = module.comments
    made = parse_function(inner, node, options)
    module.program.functions.pop(node.name, None)
    module.found[node.name] = made
    module.names[node.name] = made


def _constant(module: Module, node: ast.Assign | ast.AnnAssign) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    value = MISSING if node.value is None else _value(module, node.value)
    for target in targets:
        if value is MISSING or not isinstance(target, ast.Name):
            _unpack(module, target, value, node)
        else:
            module.names[target.id] = value


def _unpack(module: Module, target: ast.expr, value: Any, node: ast.stmt) -> None:
    """`A, B = 1, 2`; anything else is passed over."""
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    plain = all(isinstance(n, ast.Name) for n in names) and isinstance(value, (list, tuple))
    if names and plain and len(names) == len(value):
        module.names.update({n.id: v for n, v in zip(names, value, strict=True)})  # type: ignore[attr-defined]
    else:
        _skip(module, node)


def _value(module: Module, node: ast.expr) -> Any:
    """The value of a constant expression, or `MISSING`."""
    ctx = _context(module)
    if isinstance(node, ast.Call):
        path = ctx.path(node.func)
        if path is not None and path[0] == "pl":
            return values.made_by_call(ctx, path[1], node)
    if isinstance(node, ast.Dict):
        return MISSING
    try:
        value = evaluate(node, lambda n: ctx.constant(n))
    except NotConstant:
        return values.annotation_value(ctx, node)
    return value


def _skip(module: Module, node: ast.stmt) -> None:
    """Pass over a statement; what it might assign is unknown from here on, also what was known before."""
    for inner in ast.walk(node):
        name = ""
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            name = inner.id
        elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = inner.name
        elif isinstance(inner, ast.alias):
            name = inner.asname or inner.name.split(".")[0]
        if name:
            module.program.skipped[name] = node.lineno
            module.names.pop(name, None)


def loads(filepath: str | Path, free_names: str = "error") -> Function | Program:
    """The function or program in a UTF-8 file. The file is read, never executed.

    Raises:
        OSError: the file cannot be read.
        ParserError: it is no text, or outside the language.
        SyntaxError, ValueError: as `parse`.
    """
    path = str(filepath)
    with open(path, "rb") as file:
        data = file.read()
    try:
        code = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        column = exc.start - (data.rfind(b"\n", 0, exc.start) + 1) + 1
        message = f"{path} is not UTF-8 text (byte 0x{data[exc.start]:02x})"
        raise ParserSyntaxError(message, Span(path, line, column)) from None
    return parse(code.replace("\r\n", "\n"), path, free_names=free_names)


def parse_program(code: str, filename: str = "<string>") -> Program:
    """`parse` for a text that must define a program.

    Raises:
        ValueError: it defines a function instead.
    """
    return _only_program(parse(code, filename), filename)


def loads_program(filepath: str | Path) -> Program:
    """`loads` for a file that must define a program.

    Raises:
        ValueError: it defines a function instead.
    """
    return _only_program(loads(filepath), str(filepath))


def _only_program(found: Function | Program, filename: str) -> Program:
    if isinstance(found, Program):
        return found
    raise ValueError(f"Expected @pl.program but found @pl.function in {filename}: use pl.parse() or pl.loads()")
