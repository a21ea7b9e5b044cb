"""Which part of a tensor an access touches, as far as two such parts can be told apart."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.extents import Linear, linear
from ...ir.types import ScalarType
from ...ir.walk import collect_def_vars, walk_stmts
from ..device_ir import op_name

_LANE = "tile.get_subblock_idx"
Loop = s.ForStmt | s.WhileStmt


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells `[low, high)` of one axis; both are linear forms over scalars of the kernel."""

    low: Linear
    high: Linear


Window = tuple[Cells | None, ...] | None
"""The cells per axis; None where nothing is known."""


def _plus(a: Linear, b: Linear, sign: int = 1) -> Linear:
    terms = dict(a[1])
    for key, value in b[1].items():
        terms[key] = terms.get(key, 0) + sign * value
    return a[0] + sign * b[0], {k: v for k, v in terms.items() if v}


def _gap(low: Linear, high: Linear) -> int | None:
    """`low - high` when it is constant."""
    const, terms = _plus(low, high, -1)
    return None if terms else const


def _at(form: Linear, key: object, value: int) -> Linear:
    """A form with one variable set."""
    return form[0] + form[1].get(key, 0) * value, {k: v for k, v in form[1].items() if k is not key}


class Windows:
    """Reads windows in one body, and compares them."""

    def __init__(self, body: s.Stmt) -> None:
        self._defined: dict[e.Var, e.Expr] = {}
        self._lanes: set[e.Var] = set()
        for stmt in walk_stmts(body):
            if isinstance(stmt, s.AssignStmt) and isinstance(stmt.var.type, ScalarType):
                if op_name(stmt) == _LANE:
                    self._lanes.add(stmt.var)
                else:
                    self._defined[stmt.var] = stmt.value

    def of(self, offsets: e.Expr, extents: tuple[e.Expr, ...]) -> Window:
        """The window at `offsets`; over both lanes where it depends on the lane."""
        if not isinstance(offsets, e.MakeTuple) or len(offsets.elements) != len(extents):
            return None
        return tuple(self._cells(at, size) for at, size in zip(offsets.elements, extents, strict=True))

    def of_lane(self, offsets: e.MakeTuple, extents: tuple[e.Expr, ...], lane: int) -> Window:
        """The window at `offsets` as lane 0 or lane 1 sees it; nothing is known of terms that may hide its number."""
        cells: list[Cells | None] = []
        for at, size in zip(offsets.elements, extents, strict=True):
            low = self._linear(at)
            high = _plus(low, self._linear(size))
            for number in self._lanes:
                low, high = _at(low, number, lane), _at(high, number, lane)
            plain = all(isinstance(key, e.Var) for form in (low, high) for key in form[1])
            cells.append(Cells(low, high) if plain else None)
        return tuple(cells)

    def _cells(self, offset: e.Expr, extent: e.Expr) -> Cells:
        low = self._linear(offset)
        high = _plus(low, self._linear(extent))
        for lane in self._lanes:
            step = low[1].get(lane, 0)
            if step or high[1].get(lane, 0):
                low, high = _at(low, lane, 0 if step >= 0 else 1), _at(high, lane, 1 if step >= 0 else 0)
        return Cells(low, high)

    def _linear(self, x: e.Expr) -> Linear:
        form = linear(x)
        for key in list(form[1]):
            if isinstance(key, e.Var) and key in self._defined and self._plain(self._defined[key]):
                inner = self._linear(self._defined[key])
                factor = form[1][key]
                rest = (form[0], {k: v for k, v in form[1].items() if k is not key})
                form = _plus(rest, (inner[0] * factor, {k: v * factor for k, v in inner[1].items()}))
        return form

    def _plain(self, x: e.Expr) -> bool:
        """True for arithmetic: a call gives another number each time it is reached."""
        return not isinstance(x, e.Call)

    def apart(self, a: Window, b: Window) -> bool:
        """True when two windows share no cell, in one turn of all loops around them."""
        if a is None or b is None or len(a) != len(b):
            return False
        return any(_apart(x, y, 0) for x, y in zip(a, b, strict=True))

    def apart_in_turns(self, earlier: Window, later: Window, loop: Loop) -> bool:
        """True when `later`, in any later turn of `loop`, shares no cell with `earlier`."""
        if earlier is None or later is None or len(earlier) != len(later):
            return False
        changing = set(collect_def_vars(loop))
        turn = loop.loop_var if isinstance(loop, s.ForStmt) else None
        step = e.const_value(loop.step) if isinstance(loop, s.ForStmt) else 0
        if step is None:
            return False
        for x, y in zip(earlier, later, strict=True):
            if x is None or y is None or any(_varies(f, changing, turn) for f in (x.low, x.high, y.low, y.high)):
                continue
            moved = y.low[1].get(turn, 0) * step
            if _apart(x, y, moved):
                return True
        return False

    def after(self, window: Window, loop: Loop) -> Window:
        """What all turns of a loop touch together."""
        if window is None:
            return None
        changing = set(collect_def_vars(loop))
        return tuple(None if cells is None else _hull(cells, loop, changing) for cells in window)


def meet(a: Window, b: Window) -> bool:
    """True when two windows surely share a cell, in one turn of all loops around them."""
    if a is None or b is None or len(a) != len(b):
        return False
    return all(x is not None and y is not None and _meet(x, y) for x, y in zip(a, b, strict=True))


def _meet(x: Cells, y: Cells) -> bool:
    above, below = _gap(y.low, x.high), _gap(x.low, y.high)
    sizes = (_gap(x.high, x.low), _gap(y.high, y.low))
    return (
        above is not None
        and below is not None
        and above < 0
        and below < 0
        and all(n is not None and n > 0 for n in sizes)
    )


def _apart(x: Cells | None, y: Cells | None, moved: int) -> bool:
    """True when `y`, moved on by at least `moved` (in its direction), lies beyond `x`; for 0 on either side of it."""
    if x is None or y is None:
        return False
    above, below = _gap(y.low, x.high), _gap(x.low, y.high)
    if moved >= 0 and above is not None and above + moved >= 0:
        return True
    return moved <= 0 and below is not None and below - moved >= 0


def _varies(form: Linear, changing: set[e.Var], turn: e.Var | None) -> bool:
    """True when a form depends on more of a loop than its number of the turn."""
    return any(key is not turn and (not isinstance(key, e.Var) or key in changing) for key in form[1])


def _hull(cells: Cells, loop: Loop, changing: set[e.Var]) -> Cells | None:
    turn = loop.loop_var if isinstance(loop, s.ForStmt) else None
    if _varies(cells.low, changing, turn) or _varies(cells.high, changing, turn):
        return None
    if turn is None or (turn not in cells.low[1] and turn not in cells.high[1]):
        return cells
    turns = turns_of(loop)
    if not turns:
        return None
    ends = (turns[0], turns[-1])
    low = min((_at(cells.low, turn, n) for n in ends), key=lambda f: f[0])
    high = max((_at(cells.high, turn, n) for n in ends), key=lambda f: f[0])
    return Cells(low, high)


def turns_of(loop: Loop) -> range | None:
    """The numbers of the turns when they are constant."""
    if not isinstance(loop, s.ForStmt):
        return None
    start, stop, step = (e.const_value(x) for x in (loop.start, loop.stop, loop.step))
    return None if start is None or stop is None or not step else range(start, stop, step)
