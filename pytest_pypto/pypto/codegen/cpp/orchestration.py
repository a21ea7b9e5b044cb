"""The host program as C++ text."""

from __future__ import annotations

from collections.abc import Sequence

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import ForKind, ParamDirection
from ...ir.program import Function, Program
from ...ir.types import ArrayType, ScalarType, ShapedType, TensorType, TupleType
from ..metadata import ENTRY_SYMBOL, kernel_ids
from ..pto.function import dynamic_extents
from .tasks import launch_of, write_task
from .writer import Writer, scalar_dtype, tensor_dtype

HEADER = """\
// Host program '{name}' of '{program}', a C++ rendering for reading.
// The simulator runs the loadable form of the same program, {name}.py in this directory.
#include <cstdint>

#include "pto_orchestration_api.h"
"""


def orchestration_text(program: Program, entry: Function, handler: Handler) -> str:
    """The C++ rendering of the host program that starts at `entry`."""
    w = Writer()
    for line in HEADER.format(name=entry.name, program=program.name).splitlines():
        w.line(line)
    w.line()
    with w.block('extern "C"'):
        with w.block("PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs& orch_args)"):
            w.line(f"return PTO2OrchestrationConfig{{.expected_arg_count = {len(entry.params)}}};")
        w.line()
        with w.block(f"void {ENTRY_SYMBOL}(const ChipTaskArgs& orch_args)"):
            _parameters(w, entry)
            _Host(w, program, entry, handler).body(entry.body)
    return "\n".join(w.lines) + "\n"


def _parameters(w: Writer, entry: Function) -> None:
    tensors = [p for p in entry.params if isinstance(p.type, TensorType)]
    for place, param in enumerate(tensors):
        name = w.text_of[param] = w.fresh(f"ext_{param.name_hint}")
        w.line(f"const ChipTensor& {name} = orch_args.tensor({place}).ref();")
    scalars = [p for p in entry.params if isinstance(p.type, ScalarType)]
    for place, param in enumerate(scalars):
        kind = scalar_dtype(param).to_c_type_string()
        w.line(f"{kind} {w.name(param)} = from_u64<{kind}>(orch_args.scalar({place}));")
    for symbol in dynamic_extents(entry):
        where = next(
            (
                (place, axis)
                for place, param in enumerate(tensors)
                if isinstance(param.type, TensorType)
                for axis, extent in enumerate(param.type.shape)
                if extent is symbol
            ),
            None,
        )
        if where is not None:
            w.line(f"int64_t {w.name(symbol)} = orch_args.tensor({where[0]}).ref().shapes[{where[1]}];")


class _Host:
    """Writes host statements."""

    def __init__(self, w: Writer, program: Program, entry: Function, handler: Handler) -> None:
        self.w = w
        self.program = program
        self.handler = handler
        self.ids = kernel_ids(program, entry)
        self.tuples: dict[e.Var, list[str]] = {}

    def body(self, body: s.Stmt | None) -> Sequence[e.Expr]:
        for stmt in s.stmts_of(body):
            if isinstance(stmt, s.YieldStmt):
                return stmt.value
            inner = self.stmt(stmt)
            if inner:
                return inner
        return ()

    def stmt(self, stmt: s.Stmt) -> Sequence[e.Expr]:
        w = self.w
        if isinstance(stmt, s.AssignStmt):
            self.assign(stmt.var, stmt.value)
        elif isinstance(stmt, s.EvalStmt):
            self.evaluate(stmt.expr)
        elif isinstance(stmt, s.RuntimeScopeStmt):
            with w.block("PTO2_SCOPE(PTO2ScopeMode::MANUAL)" if stmt.manual else "PTO2_SCOPE()"):
                return self.body(stmt.body)
        elif isinstance(stmt, s.ForStmt):
            self.loop(stmt)
        elif isinstance(stmt, s.WhileStmt):
            self.while_loop(stmt)
        elif isinstance(stmt, s.IfStmt):
            self.branch(stmt)
        elif isinstance(stmt, s.ReturnStmt):
            if stmt.value:
                w.line(f"// returns {', '.join(w.expr(v) for v in stmt.value)}")
        else:
            self.verbatim(stmt)
        return ()

    def verbatim(self, node: s.Stmt | e.Expr) -> None:
        """Something without a rendering of its own: its printed form, as a comment."""
        for line in str(node).splitlines():
            self.w.line(f"// {line}")

    def assign(self, var: e.Var, value: e.Expr) -> None:
        w = self.w
        if isinstance(value, (e.Call, e.Submit)):
            self.call(value, var)
        elif isinstance(value, e.TupleGetItemExpr) and isinstance(value.tuple, e.Var):
            w.text_of[var] = self.tuples.get(value.tuple, [])[value.index] if value.tuple in self.tuples else "?"
        elif isinstance(var.type, ScalarType):
            text = w.expr(value)
            w.line(f"{var.type.dtype.to_c_type_string()} {w.name(var)} = {text};")
        else:
            w.text_of[var] = w.expr(value)

    def evaluate(self, value: e.Expr) -> None:
        if isinstance(value, (e.Call, e.Submit)):
            self.call(value, None)
        else:
            self.verbatim(value)

    def call(self, call: e.Call | e.Submit, var: e.Var | None) -> None:
        callee = self.program.get_function(call.op.name) if isinstance(call.op, e.GlobalVar) else None
        if callee is not None:
            self.launch(call, callee, var)
        elif isinstance(call, e.Call):
            self.operator(call, var)

    def launch(self, call: e.Call | e.Submit, callee: Function, var: e.Var | None) -> None:
        w = self.w
        launch = launch_of(self.program, callee, call.attrs.get("core_num"))
        if launch is None:
            arguments = ", ".join(w.expr(a) for a in call.args)
            w.line(f"{f'auto {w.name(var)} = ' if var is not None else ''}{callee.name}({arguments});")
            return
        outs = write_task(w, call, callee, launch, self.ids, self.handler)
        if var is None:
            return
        written = [
            w.expr(a)
            for a, d in zip(call.args, callee.param_directions, strict=False)
            if d is not ParamDirection.In and isinstance(a.type, ShapedType)
        ]
        if isinstance(var.type, TupleType):
            self.tuples[var] = [*written, f"{outs}.task_id()"][-len(var.type.types) :]
        elif written:
            w.text_of[var] = written[0]

    def operator(self, call: e.Call, var: e.Var | None) -> None:
        w = self.w
        name = call.op.name
        if var is not None and name == "tensor.create":
            assert isinstance(var.type, TensorType)
            dims = w.numbers(call.args[0])
            manual = ", /*manual_dep=*/true" if call.kwargs.get("manual_dep") else ""
            w.line(f"ChipTensor {w.name(var)} = alloc_tensor({dims}, {tensor_dtype(var.type.dtype)}{manual});")
        elif var is not None and name == "tensor.slice":
            source = w.expr(call.args[0])
            w.line(f"ChipTensor {w.name(var)} = {source}.view({w.numbers(call.args[1])}, {w.numbers(call.args[2])});")
        elif var is not None and name == "tensor.read":
            kind = scalar_dtype(call).to_c_type_string()
            place = w.numbers(call.args[1])
            w.line(f"{kind} {w.name(var)} = get_tensor_data<{kind}>({w.expr(call.args[0])}, {place});")
        elif name == "tensor.write":
            where = f"{w.expr(call.args[0])}, {w.numbers(call.args[1])}"
            w.line(f"set_tensor_data({where}, {w.expr(call.args[2])});")
            if var is not None:
                w.text_of[var] = w.expr(call.args[0])
        elif var is not None and name == "tensor.dim":
            axis = w.expr(call.args[1])
            w.line(f"int64_t {w.name(var)} = {w.expr(call.args[0])}.shapes[{axis}];")
        elif name.startswith("array."):
            self.array(call, var)
        elif name.startswith("system.task_"):
            self.task_operator(call, var)
        else:
            values = [w.numbers(a) if isinstance(a, e.MakeTuple) else w.expr(a) for a in call.args]
            target = f"auto {w.name(var)} = " if var is not None else ""
            w.line(f"{target}{name.replace('.', '_')}({', '.join(values)});")

    def array(self, call: e.Call, var: e.Var | None) -> None:
        w = self.w
        if var is None:
            return
        if call.op.name == "array.create":
            assert isinstance(var.type, ArrayType)
            w.line(f"{var.type.dtype.to_c_type_string()} {w.name(var)}[{w.expr(var.type.extent)}] = {{}};")
        elif call.op.name == "array.update_element":
            target = w.expr(call.args[0])
            w.line(f"{target}[{w.expr(call.args[1])}] = {w.expr(call.args[2])};")
            w.text_of[var] = target
        else:
            kind = scalar_dtype(call).to_c_type_string()
            w.line(f"{kind} {w.name(var)} = {w.expr(call.args[0])}[{w.expr(call.args[1])}];")

    def task_operator(self, call: e.Call, var: e.Var | None) -> None:
        w = self.w
        kind = call.op.name.removeprefix("system.task_")
        target = f"auto {w.name(var)} = " if var is not None else ""
        if kind == "is_valid":
            w.line(f"{target}{w.expr(call.args[0])}.is_valid();")
        elif kind == "invalid":
            w.line(f"{target}PTO2TaskId::invalid();")
        else:
            deps = call.attrs.get("manual_dep_edges", call.args)
            w.line(f"{target}rt_submit_dummy_task({{{', '.join(w.expr(d) for d in deps)}}});")

    def loop(self, loop: s.ForStmt) -> None:
        w = self.w
        self.carry_in(loop.iter_args, loop.return_vars)
        low, high, step = w.expr(loop.start), w.expr(loop.stop), w.expr(loop.step)
        i = w.name(loop.loop_var)
        up = not (isinstance(loop.step, e.ConstInt) and loop.step.value < 0)
        note = "" if loop.kind is ForKind.Sequential else f"  // {loop.kind.name.lower()}"
        with w.block(f"for (int64_t {i} = {low}; {i} {'<' if up else '>'} {high}; {i} += {step})"):
            if note:
                w.line(note.strip())
            self.carry_out(loop.iter_args, self.body(loop.body))

    def while_loop(self, loop: s.WhileStmt) -> None:
        self.carry_in(loop.iter_args, loop.return_vars)
        with self.w.block(f"while ({self.w.expr(loop.condition)})"):
            self.carry_out(loop.iter_args, self.body(loop.body))

    def carry_in(self, carried: Sequence[e.IterArg], results: Sequence[e.Var]) -> None:
        """Declare what a loop carries; an array or a tensor that only passes through keeps its name."""
        w = self.w
        for arg, result in zip(carried, results, strict=True):
            initial = w.expr(arg.initValue)
            if isinstance(arg.type, ScalarType):
                w.line(f"{arg.type.dtype.to_c_type_string()} {w.name(arg)} = {initial};")
            else:
                w.text_of[arg] = initial
            w.text_of[result] = w.text_of[arg]

    def carry_out(self, carried: Sequence[e.IterArg], values: Sequence[e.Expr]) -> None:
        w = self.w
        for arg, value in zip(carried, values, strict=False):
            text = w.expr(value)
            if text != w.text_of[arg]:
                w.line(f"{w.text_of[arg]} = {text};")

    def branch(self, branch: s.IfStmt) -> None:
        w = self.w
        for var in branch.return_vars:
            kind = var.type.dtype.to_c_type_string() if isinstance(var.type, ScalarType) else "ChipTensor"
            w.line(f"{kind} {w.name(var)};")
        with w.block(f"if ({w.expr(branch.condition)})"):
            self.merge(branch.return_vars, self.body(branch.then_body))
        if branch.else_body is not None:
            with w.block("else"):
                self.merge(branch.return_vars, self.body(branch.else_body))

    def merge(self, results: Sequence[e.Var], values: Sequence[e.Expr]) -> None:
        for var, value in zip(results, values, strict=False):
            self.w.line(f"{self.w.name(var)} = {self.w.expr(value)};")
