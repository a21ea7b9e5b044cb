"""Structural comparison and hashing of IR.

Ignored: spans, names of variables, comments, names of functions and programs, and the MemRef of tensor and tile types.
Variables in defining positions are paired one with one; a free variable equals itself only, unless
`enable_auto_mapping` pairs it at its first use. Inside a function the dynamic extents of types count as defined by
the first type that mentions them. INDEX and INT64 count as one type for constants and loop variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from . import expr as e
from . import stmt as s
from . import types as t
from .dtypes import INDEX, INT64, DataType
from .program import Function, Program

_LOOSE = {INDEX: INT64}


class Mismatch(Exception):
    """Two trees differ; `path` says where, outermost part first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []


class _Equal:
    """One comparison; raises `Mismatch` at the first difference."""

    def __init__(self, auto: bool) -> None:
        self.auto = auto
        self.symbols = False
        self.in_type = False
        self.forward: dict[e.Var, e.Var] = {}
        self.backward: dict[e.Var, e.Var] = {}

    def fail(self, what: str, a: object, b: object) -> None:
        raise Mismatch(f"{what} mismatch ({_show(a)} != {_show(b)})")

    def at(self, name: str, a: Any, b: Any) -> None:
        """Compare parts called `name`."""
        try:
            self.any(a, b)
        except Mismatch as miss:
            miss.path.append(name)
            raise

    def many(self, name: str, a: Sequence[Any], b: Sequence[Any]) -> None:
        if len(a) != len(b):
            self.fail(f"number of {name}", len(a), len(b))
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            self.at(f"{name}[{i}]", x, y)

    def mapping(self, name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
        if a.keys() != b.keys():
            self.fail(f"{name} keys", sorted(a), sorted(b))
        for key in sorted(a):
            self.at(f"{name}[{key!r}]", a[key], b[key])

    def any(self, a: Any, b: Any) -> None:
        if isinstance(a, e.Var) and isinstance(b, e.Var):
            self.use(a, b)
        elif a is b and not isinstance(a, (e.IRNode, t.Type, list, tuple, dict)):
            return
        elif isinstance(a, t.Type) and isinstance(b, t.Type):
            self.type(a, b)
        elif type(a) is not type(b):
            self.fail("class", type(a).__name__, type(b).__name__)
        elif isinstance(a, e.Expr):
            self.expr(a, b)
        elif isinstance(a, s.Stmt):
            self.stmt(a, b)
        elif isinstance(a, (list, tuple)):
            self.many("items", a, b)
        elif isinstance(a, dict):
            self.mapping("entries", a, b)
        elif isinstance(a, Function):
            self.function(a, b)
        elif isinstance(a, Program):
            self.program(a, b)
        elif isinstance(a, (t.TileView, t.TensorView)):
            self.view(a, b)
        elif not _plain_equal(a, b):
            self.fail(type(a).__name__, a, b)

    def pair(self, a: e.Var, b: e.Var) -> None:
        if self.forward.get(a, b) is not b or self.backward.get(b, a) is not a:
            self.fail("variable", a.name_hint, b.name_hint)
        self.forward[a] = b
        self.backward[b] = a

    def define(self, name: str, a: e.Var, b: e.Var, loose: bool = False) -> None:
        """Pair two defined variables and compare their types."""
        if type(a) is not type(b):
            self.fail("class", type(a).__name__, type(b).__name__)
        if not (loose and _loose_scalar(a.type) and _loose_scalar(a.type) == _loose_scalar(b.type)):
            self.at(f"{name}.type", a.type, b.type)
        if isinstance(a, e.IterArg) and isinstance(b, e.IterArg):
            self.at(f"{name}.initValue", a.initValue, b.initValue)
        self.pair(a, b)

    def use(self, a: e.Var, b: e.Var) -> None:
        if a in self.forward or b in self.backward:
            if self.forward.get(a) is not b or self.backward.get(b) is not a:
                self.fail("variable", a.name_hint, b.name_hint)
        elif isinstance(a, e.MemRef) and isinstance(b, e.MemRef):
            self.at("base", a.base_, b.base_)
        elif a is not b:
            if not (self.auto or self.in_type) or type(a) is not type(b):
                self.fail("free variable", a.name_hint, b.name_hint)
            self.at("type", a.type, b.type)
            self.pair(a, b)
        else:
            self.pair(a, b)

    def type(self, a: t.Type, b: t.Type) -> None:
        if a is b and not isinstance(a, (t.ShapedType, t.TupleType)):
            return
        if type(a) is not type(b):
            self.fail("type", type(a).__name__, type(b).__name__)
        if isinstance(a, t.ScalarType) and isinstance(b, t.ScalarType):
            if a.dtype is not b.dtype:
                self.fail("dtype", a.dtype, b.dtype)
        elif isinstance(a, t.TupleType) and isinstance(b, t.TupleType):
            self.many("types", a.types, b.types)
        elif isinstance(a, t.ShapedType) and isinstance(b, t.ShapedType):
            self.in_type, outer = self.symbols, self.in_type
            self.shaped(a, b)
            self.in_type = outer

    def shaped(self, a: t.ShapedType, b: t.ShapedType) -> None:
        if a.dtype is not b.dtype:
            self.fail("dtype", a.dtype, b.dtype)
        self.many("shape", a.shape, b.shape)
        if isinstance(a, t.TensorType) and isinstance(b, t.TensorType):
            self.at("tensor_view", a.tensor_view, b.tensor_view)
        if isinstance(a, t.TileType) and isinstance(b, t.TileType):
            if a.space is not b.space:
                self.fail("memory space", a.space, b.space)
            self.at("tile_view", a.tile_view, b.tile_view)

    def view(self, a: Any, b: Any) -> None:
        for name in a.__slots__:
            self.at(name, getattr(a, name), getattr(b, name))

    def expr(self, a: Any, b: Any) -> None:
        if isinstance(a, e.ConstInt):
            if a.value != b.value:
                self.fail("constant", a.value, b.value)
            if _LOOSE.get(a.dtype, a.dtype) is not _LOOSE.get(b.dtype, b.dtype):
                self.fail("constant dtype", a.dtype, b.dtype)
        elif isinstance(a, e.ConstFloat):
            if a.dtype is not b.dtype or not _plain_equal(a.value, b.value):
                self.fail("constant", a.value, b.value)
        elif isinstance(a, e.ConstBool):
            if a.value is not b.value:
                self.fail("constant", a.value, b.value)
        elif isinstance(a, e.MakeTuple):
            self.many("elements", a.elements, b.elements)
        elif isinstance(a, e.TupleGetItemExpr):
            if a.index != b.index:
                self.fail("tuple index", a.index, b.index)
            self.at("tuple", a.tuple, b.tuple)
        elif isinstance(a, e.BinaryExpr):
            self._dtype(a, b)
            self.at("left", a.left, b.left)
            self.at("right", a.right, b.right)
        elif isinstance(a, e.UnaryExpr):
            self._dtype(a, b)
            self.at("operand", a.operand, b.operand)
        else:
            self.call(a, b)

    def _dtype(self, a: Any, b: Any) -> None:
        if _LOOSE.get(a.dtype, a.dtype) is not _LOOSE.get(b.dtype, b.dtype):
            self.fail("dtype", a.dtype, b.dtype)

    def call(self, a: Any, b: Any) -> None:
        if type(a.op) is not type(b.op) or a.op.name != b.op.name:
            self.fail("callee", a.op.name, b.op.name)
        self.many("args", a.args, b.args)
        self.mapping("kwargs", a.kwargs, b.kwargs)
        self.mapping("attrs", a.attrs, b.attrs)
        if isinstance(a, e.Submit):
            self.many("deps", a.deps, b.deps)
            for name in ("core_num", "sync_start", "allow_early_resolve", "predicate"):
                self.at(name, getattr(a, name), getattr(b, name))
        self.at("type", a.type, b.type)

    def stmt(self, a: Any, b: Any) -> None:
        if isinstance(a, s.AssignStmt):
            self.at("value", a.value, b.value)
            self.define("var", a.var, b.var)
        elif isinstance(a, s.EvalStmt):
            self.at("expr", a.expr, b.expr)
        elif isinstance(a, (s.ReturnStmt, s.YieldStmt)):
            self.many("value", a.value, b.value)
        elif isinstance(a, s.SeqStmts):
            self.many("stmts", s.stmts_of(a), s.stmts_of(b))
        elif isinstance(a, s.IfStmt):
            self.at("condition", a.condition, b.condition)
            self.body("then_body", a.then_body, b.then_body)
            self.body("else_body", a.else_body, b.else_body)
            self.defines("return_vars", a.return_vars, b.return_vars)
        elif isinstance(a, s.ForStmt):
            self.for_(a, b)
        elif isinstance(a, s.WhileStmt):
            self.defines("iter_args", a.iter_args, b.iter_args)
            self.at("condition", a.condition, b.condition)
            self.body("body", a.body, b.body)
            self.defines("return_vars", a.return_vars, b.return_vars)
        elif isinstance(a, s.InlineStmt):
            if a.body != b.body or a.language is not b.language:
                self.fail("inline text", a.body, b.body)
        elif isinstance(a, s.ScopeStmt):
            self.scope(a, b)

    def body(self, name: str, a: s.Stmt | None, b: s.Stmt | None) -> None:
        """Compare bodies; a sequence of one is the statement itself."""
        if (a is None) != (b is None):
            self.fail(name, "absent" if a is None else "present", "absent" if b is None else "present")
        self.many(name, s.stmts_of(a), s.stmts_of(b))

    def defines(self, name: str, a: Sequence[e.Var], b: Sequence[e.Var]) -> None:
        if len(a) != len(b):
            self.fail(f"number of {name}", len(a), len(b))
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            self.define(f"{name}[{i}]", x, y)

    def for_(self, a: s.ForStmt, b: s.ForStmt) -> None:
        if a.kind is not b.kind:
            self.fail("loop kind", a.kind, b.kind)
        for name in ("start", "stop", "step"):
            self.at(name, getattr(a, name), getattr(b, name))
        self.defines("iter_args", a.iter_args, b.iter_args)
        self.define("loop_var", a.loop_var, b.loop_var, loose=True)
        self.body("body", a.body, b.body)
        self.defines("return_vars", a.return_vars, b.return_vars)
        self.mapping("attrs", a.attrs, b.attrs)

    def scope(self, a: Any, b: Any) -> None:
        for name in a.__slots__:
            if name not in ("span", "leading_comments", "body", "attrs"):
                self.at(name, getattr(a, name), getattr(b, name))
        self.mapping("attrs", a.attrs, b.attrs)
        self.body("body", a.body, b.body)

    def function(self, a: Function, b: Function) -> None:
        self.symbols = True
        for label, name in (("FunctionType", "func_type"), ("level", "level"), ("role", "role")):
            x, y = getattr(a, name), getattr(b, name)
            if x is not y:
                self.fail(label, x, y)
        self.defines("params", a.params, b.params)
        self.many("param_directions", a.param_directions, b.param_directions)
        self.many("return_types", a.return_types, b.return_types)
        self.mapping("attrs", a.attrs, b.attrs)
        self.body("body", a.body, b.body)

    def program(self, a: Program, b: Program) -> None:
        left, right = list(a.functions.values()), list(b.functions.values())
        if len(left) != len(right):
            self.fail("number of functions", len(left), len(right))
        for x, y in zip(left, right, strict=True):
            self.at(f"functions[{x.name!r}]", x, y)


def _loose_scalar(type_: t.Type) -> DataType | None:
    return _LOOSE.get(type_.dtype, type_.dtype) if isinstance(type_, t.ScalarType) else None


def _plain_equal(a: Any, b: Any) -> bool:
    if isinstance(a, float):
        return a.hex() == float(b).hex()
    return bool(a == b)


def _show(value: object) -> str:
    return value.name if isinstance(value, Enum) else str(value)


def _compare(lhs: Any, rhs: Any, auto: bool) -> Mismatch | None:
    try:
        _Equal(auto).any(lhs, rhs)
    except Mismatch as miss:
        return miss
    return None


def structural_equal(lhs: Any, rhs: Any, enable_auto_mapping: bool = False) -> bool:
    """True when two nodes or types have the same structure (rules in the module text)."""
    return _compare(lhs, rhs, enable_auto_mapping) is None


def assert_structural_equal(lhs: Any, rhs: Any, enable_auto_mapping: bool = False) -> None:
    """Check `structural_equal`.

    Raises:
        ValueError: they differ; the text names the path and the reason.
    """
    miss = _compare(lhs, rhs, enable_auto_mapping)
    if miss is not None:
        path = ".".join(reversed(miss.path)) or "root"
        raise ValueError(f"Structural equality assertion failed at: {path}\n\nReason: {miss.reason}")


def types_equal(a: t.Type, b: t.Type) -> bool:
    """Equality of types: structure without MemRefs; variables in extents compare by identity."""
    return _compare(a, b, False) is None


def views_equal(a: object, b: object) -> bool:
    """Equality of two views of one class."""
    return _compare(a, b, False) is None


def exprs_equal(a: Iterable[e.Expr], b: Iterable[e.Expr]) -> bool:
    """Equality of two lists of extents; constants compare by value."""
    return _compare(tuple(a), tuple(b), False) is None


class _Hash:
    """One hash; variables count as their number of first appearance (defined) or as one class (free)."""

    def __init__(self, auto: bool) -> None:
        self.auto = auto
        self.symbols = False
        self.numbers: dict[e.Var, int] = {}

    def any(self, x: Any) -> int:
        if isinstance(x, e.Var):
            return self.var(x)
        if isinstance(x, e.ConstInt):
            return hash((e.ConstInt, x.value, _LOOSE.get(x.dtype, x.dtype)))
        if isinstance(x, e.ConstFloat):
            return hash((e.ConstFloat, float(x.value).hex(), x.dtype))
        if isinstance(x, t.ShapedType):
            self.auto, outer = self.auto or self.symbols, self.auto
            made = self.fields(x, ("memref", "window_buffer"))
            self.auto = outer
            return made
        if isinstance(x, (t.Type, t.TileView, t.TensorView)):
            return self.fields(x, ("memref",))
        if isinstance(x, (e.BinaryExpr, e.UnaryExpr)):
            return self.fields(x, ("type", "span", "dtype"))
        if isinstance(x, e.Expr):
            return self.fields(x, ("span",))
        if isinstance(x, s.Stmt):
            return self.stmt(x)
        if isinstance(x, (Function, Program)):
            return self.top(x)
        if isinstance(x, e.Op):
            return hash((type(x).__name__, x.name))
        if isinstance(x, (list, tuple)):
            return hash((type(x).__name__, *(self.any(y) for y in x)))
        if isinstance(x, dict):
            return hash(tuple((k, self.any(x[k])) for k in sorted(x)))
        if isinstance(x, Enum):
            return hash((type(x).__name__, x.name))
        return hash(x.hex() if isinstance(x, float) else x)

    def var(self, x: e.Var) -> int:
        if x in self.numbers:
            return hash(("var", self.numbers[x]))
        if self.auto:
            return self.define(x)
        return hash(("memref", self.any(x.base_))) if isinstance(x, e.MemRef) else hash(("free", x.unique_id))

    def define(self, x: e.Var) -> int:
        type_ = _loose_scalar(x.type) or self.any(x.type)
        init = self.any(x.initValue) if isinstance(x, e.IterArg) else 0
        self.numbers.setdefault(x, len(self.numbers))
        return hash(("def", self.numbers[x], type_, init))

    def fields(self, x: Any, skip: tuple[str, ...]) -> int:
        names = [n for c in reversed(type(x).__mro__) for n in getattr(c, "__slots__", ()) if n not in skip]
        return hash((type(x).__name__, *(self.any(getattr(x, n)) for n in names)))

    def stmt(self, x: Any) -> int:
        if isinstance(x, s.SeqStmts):
            return hash(("seq", *(self.any(y) for y in s.stmts_of(x))))
        parts: list[int] = []
        if isinstance(x, s.AssignStmt):
            parts = [self.any(x.value), self.define(x.var)]
        elif isinstance(x, s.ForStmt):
            parts = [self.any((x.start, x.stop, x.step)), *map(self.define, x.iter_args), self.define(x.loop_var)]
            parts += [self.body(x.body), *map(self.define, x.return_vars), self.any(x.attrs), self.any(x.kind)]
        elif isinstance(x, s.WhileStmt):
            parts = [*map(self.define, x.iter_args), self.any(x.condition), self.body(x.body)]
            parts += map(self.define, x.return_vars)
        elif isinstance(x, s.IfStmt):
            parts = [self.any(x.condition), self.body(x.then_body), self.body(x.else_body)]
            parts += map(self.define, x.return_vars)
        else:
            names = [n for n in x.__slots__ if n not in ("span", "leading_comments", "body")]
            parts = [self.any(getattr(x, n)) for n in names]
            if isinstance(x, s.ScopeStmt):
                parts.append(self.body(x.body))
            elif isinstance(x, s.InlineStmt):
                parts.append(hash(x.body))
        return hash((type(x).__name__, *parts))

    def body(self, x: s.Stmt | None) -> int:
        return hash(tuple(self.any(y) for y in s.stmts_of(x))) if x is not None else 0

    def top(self, x: Function | Program) -> int:
        if isinstance(x, Program):
            return hash(("program", *(self.any(f) for f in x.functions.values())))
        self.symbols = True
        params = [self.define(p) for p in x.params]
        kind = (x.func_type, x.level, x.role)
        rest = (x.param_directions, x.return_types, x.attrs)
        return hash(("function", *params, *map(self.any, kind), *map(self.any, rest), self.body(x.body)))


def structural_hash(node: Any, enable_auto_mapping: bool = False) -> int:
    """A hash that is equal for structurally equal nodes. It differs between processes for text inside."""
    return _Hash(enable_auto_mapping).any(node)


def type_hash(type_: t.Type) -> int:
    """Hash of a type, consistent with `==`."""
    return _Hash(False).any(type_)


def view_hash(view: object) -> int:
    """Hash of a view, consistent with `==`."""
    return _Hash(False).any(view)
