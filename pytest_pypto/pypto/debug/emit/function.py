"""Functions and statements as lines of a script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType
from ...ir.program import Function
from ...ir.span import Span
from ...ir.types import ScalarType, TensorType, TileType
from ...ir.visitor import calls_in, collect_def_vars, uses_of
from ..dtypes import accepted, is_odd, torch_name
from ..names import NameTable, base_name
from ..ops.table import OP_MAP, OpHandler
from ..plan.meeting import ACCESSES
from ..plan.plan import Plan
from ..plan.regions import declared_partial
from .exprs import ExprWriter, is_tensor
from .lines import Lines

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Options:
    """What a script carries beside the computation."""

    check_shapes: bool = False
    source_positions: bool = False
    trace: bool = False


PLAIN = Options()
"""A script that only computes."""


@dataclass(frozen=True)
class FunctionText:
    """The lines of one function, and the source place of each (line number from 0)."""

    name: str
    text: str
    positions: dict[int, str]


class FunctionWriter:
    """Writes one function."""

    def __init__(self, plan: Plan, function: Function, options: Options) -> None:
        self.plan, self.function, self.options = plan, function, options
        self.names = NameTable(plan.functions)
        self.lines = Lines(options.source_positions)
        name = function.name
        self.generator = name in plan.waiting and function.func_type is not FunctionType.Group
        self.meeting = name in plan.meeting
        """Whether the lanes wait for each other before each access of memory."""
        assigned = (x for x in _statements(function.body) if isinstance(x, s.AssignStmt))
        self.lane_numbers = {x.var for x in assigned if _is_lane_number(x.value)} if self.meeting else set()
        self.exprs = ExprWriter(plan, function, self.names, self.hoist, self.generator)
        self.flow = plan.flows[name]
        self.targets: tuple[str, ...] = ()
        self.regions = 0
        self.span = function.span
        """Place of the statement that is being written."""

    def hoist(self, text: str) -> str:
        """Give an expression a name, by an assignment in front of the statement that is being written."""
        name = self.names.unique("t")
        self.lines.add(f"{name} = {text}", self.span)
        return name

    def write(self) -> FunctionText:
        """The lines of the function."""
        f = self.function
        if f.name in self.plan.two_lane:
            self.lines.add("@_two_lanes")
        elif self.generator or f.name in self.plan.members:
            self.lines.add("@_lane")
        params = [self.names.of(p) for p in f.params]
        with self.lines.block(f"def {f.name}({', '.join(params)}):", f.span):
            self._parameters()
            self.body(f.body)
        text = self.lines.text()
        return FunctionText(f.name, text, self.lines.positions)

    def _parameters(self) -> None:
        """Checks of arguments, symbolic extents, and regions that parameter types declare."""
        for param in self.function.params:
            if self.options.check_shapes and isinstance(param.type, (TensorType, TileType)):
                name = self.names.of(param)
                self.lines.add(f'_chk_param({name}, "{name}", {", ".join(accepted(param.type.dtype))})')
        self._symbols()
        for param in self.function.params:
            if declared_partial(param.type):
                valid, name = self.exprs.valid_of(param.type), self.names.of(param)
                if valid is not None:
                    self.lines.add(f"{name} = _default_valid({name}, {valid})")

    def _symbols(self) -> None:
        """Bind the symbols in parameter types that the body reads (in host programs: all extents)."""
        by_name = {p.name_hint: p for p in self.function.params}
        always = self.function.func_type is FunctionType.Orchestration
        bound: set[e.Var] = set(self.function.params)
        for param in self.function.params:
            if not isinstance(param.type, (TensorType, TileType)):
                continue
            places = [(d, k, f"{self.names.of(param)}.shape[{k}]") for k, d in enumerate(param.type.shape)]
            valid = param.type.valid_shape if declared_partial(param.type) else ()
            places += [(d, -1, f"_region({self.names.of(param)})[{k}]") for k, d in enumerate(valid)]
            for dim, place, text in places:
                if not isinstance(dim, e.Var) or dim in bound or dim in self.flow.defs:
                    continue
                if dim not in self.flow.uses and not (always and place >= 0):
                    continue
                bound.add(dim)
                same = by_name.get(dim.name_hint)
                if same is not None:
                    self.names.alias(dim, self.names.of(same))
                else:
                    self.lines.add(f"{self.names.of(dim)} = {text}")

    def body(self, stmt: s.Stmt | None) -> None:
        """All statements of a body."""
        for inner in s.stmts_of(stmt):
            self.statement(inner)

    def statement(self, stmt: s.Stmt) -> None:
        """One statement."""
        self.span = stmt.span
        if isinstance(stmt, s.AssignStmt):
            self._assign(stmt)
        elif isinstance(stmt, s.EvalStmt):
            self._eval(stmt)
        elif isinstance(stmt, s.ReturnStmt):
            self._return(stmt)
        elif isinstance(stmt, s.YieldStmt):
            self._yield(stmt)
        elif isinstance(stmt, s.SeqStmts):
            self.body(stmt)
        elif isinstance(stmt, s.IfStmt):
            self._if(stmt)
        elif isinstance(stmt, s.ForStmt):
            self._for(stmt)
        elif isinstance(stmt, s.WhileStmt):
            self._while(stmt)
        elif isinstance(stmt, s.BreakStmt):
            self.lines.add("break", stmt.span)
        elif isinstance(stmt, s.ContinueStmt):
            self.lines.add("continue", stmt.span)
        elif isinstance(stmt, s.ScopeStmt):
            self._scope(stmt)
        else:
            raise ValueError(
                f"torch_codegen cannot write a {type(stmt).__name__} (function '{self.function.name}', {stmt.span}); "
                "inline text has no meaning on one device: express it with operators"
            )

    def _assign(self, stmt: s.AssignStmt) -> None:
        value = stmt.value
        if isinstance(value, e.Call) and value.op.name.endswith(".alloc") and stmt.var not in self.flow.uses:
            return
        if self.meeting and isinstance(value, e.Call) and value.op.name in ACCESSES:
            self.lines.add("yield _Meeting()")
        text = self.exprs.text(value, packed=stmt.var not in self.plan.masks)
        name = self.names.of(stmt.var)
        if text == name:
            return
        scratch = isinstance(value, e.Call) and value.op.name == "tile.create"
        self.lines.add(f"{name} = {text}{_comment(value)}", stmt.span, only_for=name if scratch else None)
        self._check(stmt.var)
        self._trace(stmt.var)

    def _trace(self, var: e.Var) -> None:
        if self.options.trace and (is_tensor(var.type) or isinstance(var.type, ScalarType)):
            self.lines.add(f'_TRACE("{self.function.name}", "{var.name_hint}", {self.names.of(var)})')

    def _check(self, var: e.Var) -> None:
        type_ = var.type
        if not self.options.check_shapes or not isinstance(type_, (TensorType, TileType)) or var in self.plan.masks:
            return
        name = self.names.of(var)
        shape = tuple(e.const_value(d) for d in type_.shape)
        kinds = accepted(type_.dtype) if is_odd(type_.dtype) else (torch_name(type_.dtype),)
        self.lines.add(f'_chk({name}, "{name}", {shape}, {", ".join(kinds)})')

    def _eval(self, stmt: s.EvalStmt) -> None:
        self.lines.add(f"{self.exprs.text(stmt.expr)}{_comment(stmt.expr)}", stmt.span)

    def _return(self, stmt: s.ReturnStmt) -> None:
        texts = [self.exprs.text(v, packed=True) for v in stmt.value]
        self.lines.add(f"return {', '.join(texts)}".rstrip(), stmt.span)

    def _yield(self, stmt: s.YieldStmt) -> None:
        values = [self.exprs.text(v, packed=True) for v in stmt.value]
        self._assign_all(list(zip(self.targets, values, strict=False)), stmt.span)

    def _assign_all(self, pairs: Sequence[tuple[str, str]], span: Span) -> None:
        """Assign several names at once; one by one when no value mentions a name that was assigned before."""
        todo = [(t, v) for t, v in pairs if t != v]
        names = [t for t, _ in todo]
        if any(set(names[:k]) & set(_WORD.findall(v)) for k, (_, v) in enumerate(todo)):
            self.lines.add(f"{', '.join(names)} = {', '.join(v for _, v in todo)}", span)
            return
        for target, value in todo:
            self.lines.add(f"{target} = {value}", span)

    def _if(self, stmt: s.IfStmt) -> None:
        condition = self.exprs.text(stmt.condition)
        outer, meeting = self.targets, self.meeting
        if any(v in self.lane_numbers for v in uses_of(stmt.condition)):
            self.meeting = False  # only one lane comes here
        if stmt.return_vars:
            self.targets = tuple(self.names.of(v) for v in stmt.return_vars)
        with self.lines.block(f"if {_bare(condition)}:", stmt.span):
            self.body(stmt.then_body)
        if stmt.else_body is not None:
            with self.lines.block("else:"):
                self.body(stmt.else_body)
        self.targets, self.meeting = outer, meeting
        self._merged(stmt.return_vars)

    def _start_loop(self, stmt: s.ForStmt | s.WhileStmt) -> list[str]:
        """Initial values, and operands that are converted once for all iterations; returns the names of those."""
        for arg in stmt.iter_args:
            init = self.exprs.text(arg.initValue, packed=True)
            self.lines.add(f"{self.names.of(arg)} = {init}", stmt.span)
        fresh = []
        for var in self.plan.invariant_factors(self.function.name, stmt):
            name = self.names.of(var)
            if name not in self.exprs.wide:
                fresh.append(name)
                self.exprs.wide[name] = self.names.unique(f"{name}_f32")
                self.lines.add(f"{self.exprs.wide[name]} = {name}.float()")
        return fresh

    def _end_loop(self, stmt: s.ForStmt | s.WhileStmt, converted: list[str]) -> None:
        for name in converted:
            del self.exprs.wide[name]
        for result, arg in zip(stmt.return_vars, stmt.iter_args, strict=False):
            self.names.alias(result, self.names.of(arg))
        self._merged(stmt.return_vars)

    def _merged(self, variables: Sequence[e.Var]) -> None:
        for var in variables:
            self._check(var)
            self._trace(var)

    def _for(self, stmt: s.ForStmt) -> None:
        converted = self._start_loop(stmt)
        outer, self.targets = self.targets, tuple(self.names.of(a) for a in stmt.iter_args)
        bounds = ", ".join(self.exprs.text(x) for x in (stmt.start, stmt.stop, stmt.step))
        with self.lines.block(f"for {self.names.of(stmt.loop_var)} in range({bounds}):", stmt.span):
            self.body(stmt.body)
        self.targets = outer
        self._end_loop(stmt, converted)

    def _while(self, stmt: s.WhileStmt) -> None:
        converted = self._start_loop(stmt)
        rounds = self.names.unique("while_rounds")
        self.lines.add(f"{rounds} = 0")
        outer, self.targets = self.targets, tuple(self.names.of(a) for a in stmt.iter_args)
        if any(is_tensor(c.type) for c in _calls(stmt.condition)):
            with self.lines.block("while True:", stmt.span):
                with self.lines.block(f"if not {self.exprs.text(stmt.condition)}:"):
                    self.lines.add("break")
                self._count(rounds, stmt)
                self.body(stmt.body)
        else:
            with self.lines.block(f"while {_bare(self.exprs.text(stmt.condition))}:", stmt.span):
                self._count(rounds, stmt)
                self.body(stmt.body)
        self.targets = outer
        self._end_loop(stmt, converted)

    def _count(self, rounds: str, stmt: s.WhileStmt) -> None:
        """Count the rounds of a loop that may never end."""
        self.lines.add(f"{rounds} += 1")
        shown = {self.names.of(v): base_name(v.name_hint) for v in (*stmt.iter_args, *uses_of(stmt.condition))}
        carried = "".join(f", {hint!r}, {name}" for name, hint in shown.items())
        with self.lines.block(f"if {rounds} > _WHILE_LIMIT:"):
            self.lines.add(f"_endless({self.function.name!r}{carried})", stmt.span)

    def _scope(self, stmt: s.ScopeStmt) -> None:
        if isinstance(stmt, s.SpmdScopeStmt):
            self._spmd(stmt)
        elif isinstance(stmt, s.SplitAivScopeStmt):
            self._lanes(stmt)
        elif isinstance(stmt, s.CommDomainScopeStmt):
            raise ValueError(
                f"torch_codegen runs on one device; the communication scope in '{self.function.name}' ({stmt.span}) "
                "spans several: check the per-rank functions on their own"
            )
        else:
            self._guarded(stmt)
        task = stmt.attrs.get("task_id_var")
        if isinstance(task, e.Var):
            self.lines.add(f"{self.names.of(task)} = _new_task_id()", stmt.span)

    def _guarded(self, stmt: s.ScopeStmt) -> None:
        predicate = stmt.attrs.get("predicate")
        if isinstance(predicate, e.Expr):
            with self.lines.block(f"if {self.exprs.text(predicate)}:", stmt.span):
                self.body(stmt.body)
        else:
            self.body(stmt.body)

    def _spmd(self, stmt: s.SpmdScopeStmt) -> None:
        blocks = self.exprs.text(stmt.core_num)
        if any(c.op.name == "system.syncall" or c.op.name in self.plan.syncing for c in calls_in(stmt.body)):
            self._region(stmt, f"_run_blocks({blocks}")
            return
        with self.lines.block(f"for _block in _spmd_blocks({blocks}):", stmt.span):
            self._guarded(stmt)

    def _lanes(self, stmt: s.SplitAivScopeStmt) -> None:
        """A region that both vector lanes run: one after the other, or in step when they exchange tiles."""
        if any(c.op.name.endswith(".aic_gather") for c in calls_in(stmt.body)):
            self._region(stmt, f"_run_lanes({stmt.count}")
            return
        inner = s.stmts_of(stmt.body)
        lane, rest = "_lane_idx", inner
        if inner and isinstance(inner[0], s.AssignStmt) and _is_lane_number(inner[0].value):
            lane, rest = self.names.of(inner[0].var), inner[1:]
        with self.lines.block(f"for {lane} in _aiv_lanes({stmt.count}):", stmt.span):
            for x in rest:
                self.statement(x)

    def _region(self, stmt: s.ScopeStmt, runner: str) -> None:
        """A region as a generator of its own, so that several lanes or blocks can run it in step."""
        self.regions += 1
        name = self.names.unique(f"region_{self.regions}")
        made = list(dict.fromkeys(collect_def_vars(stmt.body)))
        before = [v for v in made if self.names.known(v) is not None]
        inside = {id(x) for x in _statements(stmt.body)}
        after = [v for v in made if self._used_outside(v, inside)]
        given = ", ".join(self.names.of(v) for v in before)
        with self.lines.block(f"def {name}({given}):", stmt.span):
            outer, self.exprs.in_lane = self.exprs.in_lane, True
            self._guarded(stmt)
            self.exprs.in_lane = outer
            self.lines.add(f"return {', '.join(self.names.of(v) for v in after)}".rstrip())
            self.lines.add("yield")
        results = ", ".join(self.names.of(v) for v in after)
        self.lines.add(f"{results + ' = ' if after else ''}{runner}, {name}{', ' + given if given else ''})", stmt.span)

    def _used_outside(self, var: e.Var, inside: set[int]) -> bool:
        from ...ir.visitor import exprs_of, uses_of

        rest = [x for x in self.flow.statements if id(x) not in inside]
        return any(v is var for x in rest for root in exprs_of(x) for v in uses_of(root))


def _statements(body: s.Stmt) -> list[s.Stmt]:
    from ...ir.visitor import walk_stmts

    return list(walk_stmts(body))


def _is_lane_number(value: e.Expr) -> bool:
    return isinstance(value, e.Call) and value.op.name.endswith(".get_subblock_idx")


def _calls(x: e.Expr) -> list[e.Call]:
    from ...ir.visitor import walk_exprs

    return [c for c in walk_exprs(x) if isinstance(c, e.Call)]


def _comment(value: e.Expr) -> str:
    """`  # bar_v` behind a no-op."""
    if not isinstance(value, e.Call) or isinstance(value.op, e.GlobalVar):
        return ""
    handler = OP_MAP.get(value.op.name)
    noted = isinstance(handler, OpHandler) and handler.comment
    return f"  # {value.op.name.rsplit('.', 1)[-1]}" if noted else ""


def _bare(text: str) -> str:
    """A condition without the parentheses around the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, ch in enumerate(text):
        depth += (ch == "(") - (ch == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]
