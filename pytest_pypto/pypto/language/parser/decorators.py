"""`@pl.function`, `@pl.program` and `@pl.inline` on Python code: find the source, then parse it."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType
from types import FunctionType as PyFunction
from typing import Any, overload

from ...ir.enums import FunctionType, Level, Role, SplitMode
from ...ir.program import Function, Program
from .context import Ctx, ProgramContext
from .diagnostics import ParserError, ParserSyntaxError, authors_error
from .functions import Options, function_context, parse_function
from .modules import parse_program_class, reporting, with_members
from .names import Closure
from .text import Source, comments_of
from .values import InlineFunction

_trees: dict[str, tuple[int, ast.Module, Source, dict[int, str]]] = {}
"""Parsed files by name, with the hash of the text they were parsed from."""


@overload
def function(func: Callable[..., Any], /) -> Function: ...
@overload
def function(
    func: None = None,
    *,
    type: FunctionType = ...,
    level: Level | None = ...,
    role: Role | None = ...,
    attrs: Mapping[str, Any] | None = ...,
    auto_scope: bool = ...,
    strict_ssa: bool = ...,
    external_source: str | Path | None = ...,
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    func: Callable[..., Any] | None = None,
    *,
    type: FunctionType = FunctionType.Opaque,
    level: Level | None = None,
    role: Role | None = None,
    attrs: Mapping[str, Any] | None = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: str | Path | None = None,
) -> Any:
    """Parse a Python function into an `ir.Function`.

    On a method the function object is given back; the class needs `@pl.program`, which parses it.

    Args:
        type: kind of the function, which decides where it runs and (mostly) `level` and `role`.
        auto_scope: False when the author places the runtime scopes.
        strict_ssa: refuse a second assignment to a name.
        external_source: C++ file that holds the body of an AIC or AIV function.

    Raises:
        ParserError: the function is outside the language.
    """
    options = Options(type, level, role, _decorator_attrs(attrs), auto_scope, strict_ssa, None)
    frame = sys._getframe(1)

    __tracebackhide__ = authors_error

    def decorate(target: Callable[..., Any]) -> Any:
        __tracebackhide__ = authors_error
        where = frame if func is not None else sys._getframe(1)
        if "__qualname__" in where.f_locals and "__module__" in where.f_locals:
            return target
        try:
            if external_source is not None:
                base = os.path.dirname(_code(target).co_filename)
                options.external_source = os.path.normpath(os.path.join(base, str(external_source)))
            return _parse_function(target, options, where)
        except ParserError as error:
            raise error.with_traceback(None) from None

    return decorate if func is None else decorate(func)


def _decorator_attrs(attrs: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if attrs is None:
        return None
    message = "@pl.function(attrs=...) is deprecated: write pl.func_attr({...}) at the head of the body"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    made = {k: v.value if k == "split" and isinstance(v, SplitMode) else v for k, v in attrs.items()}
    if not made.get("split", True):
        del made["split"]
    return made


def _code(target: Callable[..., Any]) -> CodeType:
    code = getattr(target, "__code__", None)
    if not isinstance(code, CodeType):
        name = getattr(target, "__name__", repr(target))
        raise ParserSyntaxError(f"Cannot retrieve source code for '{name}': it is no Python function")
    return code


def _parse_function(target: Callable[..., Any], options: Options, frame: FrameType) -> Function:
    code = _code(target)
    tree, source, comments = _file(code.co_filename, target.__name__, target.__globals__)
    node = _definition(tree, code, target.__name__)
    closure = Closure(_cells(target), frame.f_locals, target.__globals__)
    program = ProgramContext(strict=options.strict_ssa, live=True)
    with reporting(program):
        ctx = function_context(source, closure, program, node, options)
        ctx.comments = dict(comments)
        made = parse_function(ctx, node, options)
        if program.externals:
            EXTERNALS[made] = tuple(program.externals.values())
        return made
    raise AssertionError("reporting() raises when parsing failed")


EXTERNALS: dict[Function, tuple[Function, ...]] = {}
"""Functions that a module-level function calls by name; they join the program together with it."""


def _cells(target: Callable[..., Any]) -> dict[str, Any]:
    """Variables of outer functions that a function mentions."""
    if not isinstance(target, PyFunction) or target.__closure__ is None:
        return {}
    found = {}
    for name, cell in zip(target.__code__.co_freevars, target.__closure__, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _file(filename: str, name: str, namespace: Mapping[str, Any]) -> tuple[ast.Module, Source, dict[int, str]]:
    """The parsed file that defines `name`, kept until its text changes."""
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, dict(namespace))
    if not lines:
        raise ParserSyntaxError(
            f"Cannot retrieve source code for '{name}': {filename} cannot be read",
            hint="define it in a file; for text in memory use pl.parse(code)",
        )
    text = "".join(lines)
    known = _trees.get(filename)
    if known is not None and known[0] == hash(text):
        return known[1], known[2], known[3]
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError) as exc:
        message = f"Cannot retrieve source code for '{name}': {filename} no longer parses ({exc})"
        raise ParserSyntaxError(message, hint="was the file changed after it was imported?") from None
    source = Source(text, filename)
    comments = comments_of(source, tree)
    _trees[filename] = (hash(text), tree, source, comments)
    return tree, source, comments


def _first_line(node: ast.FunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _definition(tree: ast.Module, code: CodeType, name: str) -> ast.FunctionDef:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name and _first_line(node) == code.co_firstlineno:
            return node
    place = f"line {code.co_firstlineno} of {code.co_filename}"
    raise ParserSyntaxError(
        f"Cannot retrieve source code for '{name}': {place} is no `def {name}`",
        hint="was the file changed after it was imported?",
    )


def program(cls: type | None = None, *, strict_ssa: bool = False) -> Any:
    """Parse a class whose methods have `@pl.function` into an `ir.Program` of the same name.

    Args:
        strict_ssa: refuse a second assignment to a name, in every method.

    Raises:
        ParserError: a method is outside the language, or there is none.
    """
    __tracebackhide__ = authors_error
    frame = sys._getframe(1)

    def decorate(target: type) -> Program:
        __tracebackhide__ = authors_error
        try:
            return _parse_program(target, strict_ssa, frame if cls is not None else sys._getframe(1))
        except ParserError as error:
            raise error.with_traceback(None) from None

    return decorate if cls is None else decorate(cls)


def _parse_program(cls: type, strict: bool, frame: FrameType) -> Program:
    if not isinstance(cls, type):
        raise ParserSyntaxError(f"@pl.program is for classes, got {cls!r}", hint="decorate functions with @pl.function")
    tree, source, comments = _file(frame.f_code.co_filename, cls.__name__, frame.f_globals)
    node = _class_definition(tree, cls, frame.f_lineno)
    cells: dict[str, Any] = {}
    for member in vars(cls).values():
        cells.update(_cells(member))
    outer = Closure(cells, frame.f_locals, frame.f_globals)
    context = ProgramContext(live=True)
    with reporting(context):
        members = {k: v for k, v in vars(cls).items() if _is_constant(k, v)}
        closure = with_members(Ctx(source, outer, context, cls.__name__), node, members)
        return parse_program_class(source, closure, context, node, strict, dict(comments))
    raise AssertionError("reporting() raises when parsing failed")


def _is_constant(name: str, value: Any) -> bool:
    return not name.startswith("__") and not callable(value)


def _class_definition(tree: ast.Module, cls: type, line: int) -> ast.ClassDef:
    """The class statement: the one that holds a method of `cls`, else the one at the decorator's line."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == cls.__name__]
    starts = {m.__code__.co_firstlineno for m in vars(cls).values() if isinstance(m, PyFunction)}
    for node in found:
        if any(isinstance(m, ast.FunctionDef) and _first_line(m) in starts for m in node.body):
            return node
    for node in found:
        if _first_line(node) <= line <= (node.end_lineno or node.lineno):
            return node
    raise ParserSyntaxError(
        f"Cannot retrieve source code for '{cls.__name__}': no such class near line {line}",
        hint="was the file changed after it was imported?",
    )


def inline(func: Callable[..., Any]) -> InlineFunction:
    """Mark a function whose statements are spliced into every function that calls it by name.

    It takes positional arguments and ends in one `return` of a value or a tuple.
    """
    code = _code(func)
    tree, source, _ = _file(code.co_filename, func.__name__, func.__globals__)
    node = _definition(tree, code, func.__name__)
    frame = sys._getframe(1)
    names = {**func.__globals__, **frame.f_locals, **_cells(func)}
    params = [a.arg for a in node.args.args]
    return InlineFunction(node.name, node, params, code.co_filename, source.lines, 0, 0, names)
