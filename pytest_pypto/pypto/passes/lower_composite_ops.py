"""LowerCompositeOps: sine and cosine become multiplications, additions and casts."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.dtypes import FP32, INT32, DataType
from ..ir.enums import CAST_MODES
from ..ir.op_table import create_op_call
from ..ir.program import Function, Program
from ..ir.span import Span
from ..ir.types import TileType
from ..ir.visitor import IRMutator
from .base import FunctionPass
from .device_ir import is_device, kernel_error, op_call

# All constants are FP32 values, written with the digits that read back to the same bits.
INVERSE_PI = 0.31830987334251404
PI_PARTS = (3.140625, 0.0009670257568359375, 6.2771141529083252e-07, 1.2164491636212915e-10, -1.0290622927356871e-13)
HALF_PI = (1.5707963705062866, -4.3711388286737929e-08)
POLYNOMIAL = (2.6049265215988271e-06, -0.00019808944489341229, 0.0083330497145652771, -0.16666658222675323)


@dataclass(frozen=True)
class LowerCompositeOps(FunctionPass):
    """`tile.sin` and `tile.cos` (FP32 only): range reduction by pi, a polynomial of degree 9, the sign of the period.

    With k the nearest multiple of pi: sin(x) = (-1)^k sin(x - k pi), cos(x) = (-1)^k sin(x - (k - 1/2) pi).
    """

    name = "LowerCompositeOps"

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function without composite operators.

        Raises:
            ValueError: an operand that is not FP32.
        """
        if not is_device(func):
            return func
        body = _Composites().visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Composites(IRMutator):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        call = op_call(op)
        if call is None or call.op.name not in ("tile.sin", "tile.cos"):
            return op
        type_ = call.args[0].type
        if not isinstance(type_, TileType) or type_.dtype is not FP32:
            raise kernel_error(f"{call.op.name} takes an FP32 tile, got {type_}; cast the operand first", op.span)
        lines = _Lines(op.var.name_hint.removesuffix("__tile"), call.span, self.count)
        value = lines.sine(call.args[0], cosine=call.op.name == "tile.cos")
        self.count = lines.count
        last = s.AssignStmt(op.var, value, op.span, leading_comments=op.leading_comments)
        return s.SeqStmts((*lines.made, last), op.span)


class _Lines:
    """Statements `<base>__<role>_tmp_v<n> = ...`, one operator each."""

    def __init__(self, base: str, span: Span, count: int) -> None:
        self.base, self.span, self.count = base, span, count
        self.made: list[s.Stmt] = []

    def put(self, role: str, call: e.Call) -> e.Var:
        var = e.Var(f"{self.base}__{role}_tmp_v{self.count}", call.type, self.span)
        self.count += 1
        self.made.append(s.AssignStmt(var, call, self.span))
        return var

    def op(self, name: str, *args: e.Expr | float) -> e.Call:
        exprs = [a if isinstance(a, e.Expr) else e.ConstFloat(a, FP32, self.span) for a in args]
        return create_op_call(f"tile.{name}", exprs, {}, span=self.span)

    def cast(self, x: e.Expr, to: DataType, mode: str) -> e.Call:
        kwargs = {"target_type": to, "mode": CAST_MODES.index(mode)}
        return create_op_call("tile.cast", [x], kwargs, span=self.span)

    def sine(self, x: e.Expr, cosine: bool) -> e.Call:
        """The call that gives sin(x), or cos(x); everything before it is in `made`."""
        k = self.multiple(x, cosine)
        r = self.reduced(x, k, cosine)
        sign = self.sign(k)
        square = self.put("t2sq", self.op("mul", r, r))
        p = self.put("p_r0", self.op("muls", square, POLYNOMIAL[0]))
        for i, coefficient in enumerate((*POLYNOMIAL[1:], 1.0), 1):
            p = self.put("p_one" if i == 4 else f"p_r{i}", self.op("adds", p, coefficient))
            if i < 4:
                p = self.put(f"p_t2_r{i}", self.op("mul", p, square))
        return self.op("mul", sign, self.put("t_p", self.op("mul", r, p)))

    def multiple(self, x: e.Expr, cosine: bool) -> e.Var:
        """The nearest multiple of pi (for the cosine, half a period further), as FP32."""
        scaled = self.put("pi_inv_x", self.op("muls", x, INVERSE_PI))
        if cosine:
            scaled = self.put("pi_inv_x_half", self.op("adds", scaled, 0.5))
        whole = self.put("k_i", self.cast(scaled, INT32, "rint" if cosine else "round"))
        return self.put("k_f", self.cast(whole, FP32, "none"))

    def reduced(self, x: e.Expr, k: e.Var, cosine: bool) -> e.Expr:
        """x minus k times pi, pi in five parts so that nothing is lost; the order of the steps counts."""
        r = x
        for i, part in enumerate(PI_PARTS):
            product = self.put("k_pi_v2" if i == 0 else f"k_pi_c{i}", self.op("muls", k, part))
            r = self.put(f"t{i}", self.op("sub", r, product))
            if cosine and i == 1:
                r = self.put("t1_half", self.op("adds", r, HALF_PI[0]))
        return self.put("t4_half", self.op("adds", r, HALF_PI[1])) if cosine else r

    def sign(self, k: e.Var) -> e.Var:
        """(-1)^k as floor(k/2)*4 - 2k + 1."""
        half = self.put("half_k", self.op("muls", k, 0.5))
        floor = self.put("floor_hk_i", self.cast(half, INT32, "floor"))
        four = self.put("floor_x4", self.op("muls", self.put("floor_hk_f", self.cast(floor, FP32, "none")), 4.0))
        twice = self.put("neg2_k", self.op("muls", k, -2.0))
        return self.put("sign", self.op("adds", self.put("sign_pre", self.op("add", four, twice)), 1.0))
