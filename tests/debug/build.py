"""Small programs for the tests of the oracle, built by hand, and running them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import torch

from pytest_pypto.pypto.debug import torch_codegen
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import FunctionType, MemorySpace, ParamDirection
from pytest_pypto.pypto.ir.op_table import create_op_call
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.ir.types import ScalarType, TensorType, TensorView, TileType, TileView, Type
from pytest_pypto.pypto.language.parser import parse

F32, F16, BF16 = DataType.FP32, DataType.FP16, DataType.BF16
I32, I64, INDEX = DataType.INT32, DataType.INT64, DataType.INDEX


def tensor(shape: Sequence[Any], dtype: DataType = F32, valid: Sequence[Any] | None = None) -> TensorType:
    """A tensor type."""
    view = None if valid is None else TensorView(valid_shape=tuple(valid))  # type: ignore[arg-type]
    return TensorType(tuple(shape), dtype, None, view)  # type: ignore[arg-type]


def tile(
    shape: Sequence[Any],
    dtype: DataType = F32,
    valid: Sequence[Any] | None = None,
    space: MemorySpace | None = MemorySpace.Vec,
) -> TileType:
    """A tile type."""
    view = None if valid is None else TileView(valid_shape=tuple(valid))  # type: ignore[arg-type]
    return TileType(tuple(shape), dtype, None, view, space)


def scalar(dtype: DataType = INDEX) -> ScalarType:
    """A scalar type."""
    return ScalarType(dtype)


def call(name: str, args: Sequence[Any], kwargs: dict[str, Any] | None = None, type: Type | None = None) -> e.Call:
    """An operator call; ints become INDEX constants, floats FP32 ones, tuples tuple operands."""
    operands = [operand(a) for a in args]
    if type is not None:
        return e.Call(e.Op(name), operands, kwargs or {}, type=type)
    return create_op_call(name, operands, kwargs or {})


def operand(value: Any) -> e.Expr:
    """A Python value as an operand."""
    if isinstance(value, e.Expr):
        return value
    if isinstance(value, bool):
        return e.ConstBool(value)
    if isinstance(value, int):
        return e.index(value)
    if isinstance(value, float):
        return e.ConstFloat(value, F32)
    return e.MakeTuple(tuple(operand(v) for v in value))


def invoke(name: str, args: Sequence[e.Expr], type: Type | None = None, **attrs: Any) -> e.Call:
    """A call of a function of the program."""
    return e.Call(e.GlobalVar(name), args, {}, attrs, type=type)


class Body:
    """Statements of a function, one after the other."""

    def __init__(self) -> None:
        self.stmts: list[s.Stmt] = []

    def let(self, name: str, value: e.Expr, type: Type | None = None) -> e.Var:
        """name = value"""
        var = e.Var(name, type or value.type)
        self.stmts.append(s.AssignStmt(var, value))
        return var

    def op(self, name: str, op: str, *args: Any, type: Type | None = None, **kwargs: Any) -> e.Var:
        """name = op(args, **kwargs)"""
        return self.let(name, call(op, args, kwargs, type))

    def do(self, value: e.Expr) -> None:
        """value, for its effect"""
        self.stmts.append(s.EvalStmt(value))

    def ret(self, *values: e.Expr) -> None:
        """return values"""
        self.stmts.append(s.ReturnStmt(values))

    def seq(self) -> s.SeqStmts:
        """The statements as a body."""
        return s.SeqStmts(tuple(self.stmts))


def function(
    name: str,
    params: Sequence[tuple[str, Type] | tuple[str, Type, ParamDirection]],
    body: Callable[..., None],
    kind: FunctionType = FunctionType.Opaque,
    **attrs: Any,
) -> Function:
    """A function; `body(b, *params)` fills in the statements."""
    variables = [e.Var(p[0], p[1]) for p in params]
    builder = Body()
    body(builder, *variables)
    directed = [(v, p[2] if len(p) > 2 else ParamDirection.In) for v, p in zip(variables, params, strict=True)]  # type: ignore[misc]
    returned = next((x.value for x in reversed(builder.stmts) if isinstance(x, s.ReturnStmt)), ())
    return Function(name, directed, [v.type for v in returned], builder.seq(), type=kind, attrs=attrs)


def code_of(node: Program | Function, **options: Any) -> str:
    """The script without its preamble."""
    text = torch_codegen(node, **options)
    return text[_start_of_functions(text, node) :]


def _start_of_functions(text: str, node: Program | Function) -> int:
    names = [node.name] if isinstance(node, Function) else [f.name for f in node.functions.values()]
    starts = [text.find(f"\n{d}def {n}(") for n in names for d in ("@_lane\n", "@_two_lanes\n", "")]
    meta = text.find("\n_GROUP_META.update(")
    return min(k for k in (*starts, meta) if k >= 0)


def space_of(node: Program | Function, **options: Any) -> dict[str, Any]:
    """The namespace a script leaves. The preamble, which many scripts share, is compiled once per text."""
    text = torch_codegen(node, **options)
    start = _start_of_functions(text, node)
    space: dict[str, Any] = {}
    exec(_compiled(text[:start]), space)
    exec("\n" * text.count("\n", 0, start) + text[start:], space)
    return space


@lru_cache(maxsize=64)
def _compiled(text: str) -> CodeType:
    return compile(text, "<string>", "exec")


def run(node: Program | Function, *args: Any, entry: str | None = None, **options: Any) -> Any:
    """Run a function of a script, with shape checks unless told otherwise."""
    options.setdefault("check_shapes", True)
    name = entry or (node.name if isinstance(node, Function) else "main")
    return space_of(node, **options)[name](*args)


def program(text: str, before: str = "") -> Program:
    """A program from the body of its class, in the language's own notation; `before` stands in front of the class."""
    head = f"import pypto.language as pl\n{before}\n@pl.program\nclass P:\n"
    body = "\n".join(f"    {line}" if line.strip() else line for line in text.strip("\n").splitlines())
    node = parse(head + body)
    assert isinstance(node, Program)
    return node


def run_op(
    name: str, operands: Sequence[Any], kwargs: dict[str, Any] | None = None, check_shapes: bool = True
) -> tuple[Any, Type]:
    """Run one operator. An operand is a (torch tensor, type) pair, or a constant or tuple; returns result and type."""
    pairs = [(k, o) for k, o in enumerate(operands) if isinstance(o, tuple) and len(o) == 2 and isinstance(o[1], Type)]
    variables = {k: e.Var(f"x{k}", o[1]) for k, o in pairs}
    made = call(name, [variables.get(k, o) for k, o in enumerate(operands)], kwargs)
    result = e.Var("out", made.type)
    body = s.SeqStmts((s.AssignStmt(result, made), s.ReturnStmt((result,))))
    f = Function("f", list(variables.values()), [made.type], body)
    return run(f, *[o[0] for _, o in pairs], check_shapes=check_shapes), made.type


def region(t: torch.Tensor) -> tuple[int, ...]:
    """The valid extents of a result."""
    return tuple(getattr(t, "_pypto_valid_shape", t.shape))


def valid_part(t: torch.Tensor) -> torch.Tensor:
    """The valid part of a result."""
    return t[tuple(slice(0, v) for v in region(t))]
