"""Reader of `.pto` modules: frame, functions and control flow. The operations are spelled in `grammar`."""

from __future__ import annotations

import difflib
from pathlib import Path

from ..findings import DeviceError
from ..platforms import PLATFORMS
from .cursor import Cursor
from .forms_scalar import dense, results
from .grammar import build_forms
from .known import all_names
from .lexer import Token, decode, tokens
from .nodes import Func, Module, Op, Region
from .types import PtoType, PtrT, ScalarT, VectorT

_FORMS = build_forms()
_MAX_DEPTH = 100


def read_file(path: Path, shown: str | None = None) -> Module:
    """The module in the file at `path`; `shown` is the name used in messages.

    Raises:
        DeviceError: the file cannot be read or is no `.pto` text of the subset.
    """
    name = shown or path.name
    try:
        raw = path.read_bytes()
    except OSError as exc:
        raise DeviceError(f"cannot read the kernel: {exc.strerror}", file=name) from None
    return read_module(decode(raw, name), name)


def read_module(text: str, file: str = "<text>") -> Module:
    """The module that `text` spells.

    Raises:
        DeviceError: with file, line and column of the first thing that is not of the subset.
    """
    c = Cursor(tokens(text, file), file)
    if c.here.kind == "end":
        c.fail("the file holds no module")
    start = c.expect("module")
    arch = ""
    if c.accept("attributes"):
        attrs = c.attrs()
        arch = str(attrs.get("pto.target_arch", ""))
    if not arch:
        c.fail('the module lacks attributes {pto.target_arch = "..."}', start)
    if arch not in PLATFORMS:
        c.fail(f"unknown target architecture {arch!r}; the simulated device has {', '.join(PLATFORMS)}", start)
    c.expect("{")
    funcs: dict[str, Func] = {}
    while not c.at("}"):
        func = _func(c)
        if func.name in funcs:
            raise DeviceError(f"function @{func.name} is defined twice", file=file, line=func.line)
        funcs[func.name] = func
    c.expect("}")
    if c.here.kind != "end":
        c.fail(f"unexpected {c.here.text!r} after the module")
    if not funcs:
        c.fail("the module has no function", start)
    return Module(arch, funcs, file)


def _func(c: Cursor) -> Func:
    start = c.here
    if start.kind == "end":
        c.fail("the file ends inside the module; it is truncated")
    if not c.accept("func.func"):
        c.fail(f"expected func.func or '}}', found {start.text!r}")
    name = c.kind("symbol", "a function name (@name)")[1:]
    params: list[tuple[str, PtrT | ScalarT]] = []
    c.expect("(")
    while not c.at(")"):
        value = c.value()
        c.expect(":")
        token = c.here
        typ = c.type()
        if not isinstance(typ, PtrT | ScalarT):
            c.fail(f"parameter %{value} has type {typ}; kernels take pointers and scalars", token)
        params.append((value, typ))
        if not c.accept(","):
            break
    c.expect(")")
    c.expect("attributes")
    kind = c.attrs().get("pto.kernel_kind")
    if kind not in ("vector", "cube"):
        c.fail(f"function @{name} has kernel_kind {kind!r}; known are vector, cube", start)
    body = _region(c, f"function @{name}", start, 0)
    c.loc()
    return Func(name, list(params), kind, body, start.line)


def _region(c: Cursor, what: str, start: Token, depth: int) -> Region:
    """A body between braces, with an optional `^bb0(...)` head."""
    if depth > _MAX_DEPTH:
        c.fail(f"control flow is nested deeper than {_MAX_DEPTH}", start)
    c.expect("{")
    region = Region([])
    if c.here.kind == "label":
        c.take()
        c.expect("(")
        while not c.at(")"):
            name = c.value()
            c.expect(":")
            region.args.append((name, c.type()))
            if not c.accept(","):
                break
        c.expect(")")
        c.expect(":")
    while not c.at("}"):
        if c.here.kind == "end":
            c.fail(f"the file ends inside {what}, which starts in line {start.line}; it is truncated")
        region.ops.append(_op(c, depth))
    c.expect("}")
    return region


def _op(c: Cursor, depth: int) -> Op:
    start = c.here
    names: list[str] = []
    if start.kind == "value":
        names = [c.value()]
        while c.accept(","):
            names.append(c.value())
        c.expect("=")
    head = c.take()
    name = head.text.strip('"') if head.kind == "string" else head.text
    if head.kind not in ("ident", "string"):
        c.fail(f"expected an operation, found {head.text!r}", head)
    op = Op(name, head.line, names)
    if name in _CONTROL:
        _CONTROL[name](c, op, start, depth)
    elif name == "arith.constant" and c.here.text.startswith("dense<"):
        dense(c, op)
    elif name in _FORMS:
        _FORMS[name](c, op)
    else:
        _unknown(c, head, name)
    op.loc = c.loc()
    return op


def _unknown(c: Cursor, head: Token, name: str) -> None:
    known = all_names()
    near = difflib.get_close_matches(name, known, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    c.fail(f"unknown operation {name!r}{hint} Known operations: {', '.join(known)}", head)


def _for(c: Cursor, op: Op, start: Token, depth: int) -> None:
    """`[%r =] scf.for %i = %lo to %hi step %st [iter_args(%a = %x) -> (T)] { ... }`"""
    var = c.value()
    c.expect("=")
    op.ins = [c.value()]
    for word in ("to", "step"):
        c.expect(word)
        op.ins.append(c.value())
    op.groups["var"] = [var]
    _carries(c, op, "iter_args")
    op.regions = [_region(c, "a loop", start, depth + 1)]


def _carries(c: Cursor, op: Op, word: str | None) -> None:
    op.groups["args"], op.groups["init"] = [], []
    if word is not None and not c.accept(word):
        results(c, op, 0, 0)
        return
    c.expect("(")
    while not c.at(")"):
        op.groups["args"].append(c.value())
        c.expect("=")
        op.groups["init"].append(c.value())
        if not c.accept(","):
            break
    c.expect(")")
    if word is None:
        c.expect(":")
        _type_list(c)
    if c.accept("->"):
        op.out_types = _type_list(c)
    if len(op.results) != len(op.groups["args"]) or len(op.out_types) != len(op.results):
        c.fail(
            f"{op.name} carries {len(op.groups['args'])} value(s) but gives {len(op.results)} result(s)",
            start_of(op, c),
        )


def start_of(op: Op, c: Cursor) -> Token:
    """A token in the line of `op`, for messages."""
    return Token("ident", op.name, op.line, 1)


def _type_list(c: Cursor) -> list[PtoType]:
    c.expect("(")
    found = [] if c.at(")") else c.types()
    c.expect(")")
    return list(found)


def _if(c: Cursor, op: Op, start: Token, depth: int) -> None:
    """`[%r =] scf.if %c [-> (T)] { ... } [else { ... }]`"""
    op.ins = [c.value()]
    if c.accept("->"):
        op.out_types = _type_list(c)
    if len(op.out_types) != len(op.results):
        c.fail(f"scf.if has {len(op.out_types)} result type(s) but names {len(op.results)} result(s)", start)
    op.regions = [_region(c, "a branch", start, depth + 1)]
    if c.accept("else"):
        op.regions.append(_region(c, "a branch", start, depth + 1))
    elif op.results:
        c.fail("scf.if with results needs an else branch", start)


def _while(c: Cursor, op: Op, start: Token, depth: int) -> None:
    """`%r = scf.while (%a = %x) : (T) -> (T) { ... scf.condition } do { ^bb0(%b : T): ... scf.yield }`"""
    _carries(c, op, None)
    op.regions = [_region(c, "a while condition", start, depth + 1)]
    c.expect("do")
    op.regions.append(_region(c, "a while body", start, depth + 1))
    if len(op.regions[1].args) != len(op.groups["args"]):
        c.fail("the body of scf.while takes as many values as the loop carries", start)


def _yield(c: Cursor, op: Op, start: Token, depth: int) -> None:
    """`scf.yield %a, %b : T, T` or `scf.condition(%c) %a : T`"""
    if op.name == "scf.condition":
        c.expect("(")
        op.groups["condition"] = [c.value()]
        c.expect(")")
    if c.here.kind == "value":
        op.ins = [c.value()]
        while c.accept(","):
            op.ins.append(c.value())
        c.expect(":")
        op.types = c.types()
    if len(op.types) != len(op.ins):
        c.fail(f"{op.name} hands on {len(op.ins)} value(s) with {len(op.types)} type(s)", start)


def _return(c: Cursor, op: Op, start: Token, depth: int) -> None:
    if depth:
        c.fail("return inside control flow", start)


_CONTROL = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.yield": _yield,
    "scf.condition": _yield,
    "return": _return,
}
__all__ = ["VectorT", "read_file", "read_module"]
