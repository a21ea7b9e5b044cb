"""Whether two trees are the same node for node: a cheaper and stricter question than structural equality."""

from __future__ import annotations

import functools
from dataclasses import fields, is_dataclass
from typing import Any

from . import expr as e
from . import types as t


def same_nodes(a: Any, b: Any) -> bool:
    """True when `b` says what `a` says, of the same variables: only the nodes may be other objects.

    Places in the source do not count. Such trees print alike.
    """
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, e.Var):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same_nodes, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same_nodes, a.values(), b.values()))
    if isinstance(a, (e.IRNode, t.Type, t.TileView, t.TensorView)):
        kind: Any = type(a)
        return all(same_nodes(getattr(a, name), getattr(b, name)) for name in _parts(kind))
    if isinstance(a, e.Op):
        return bool(a.name == b.name)
    return repr(a) == repr(b) if isinstance(a, float) else bool(a == b)


@functools.cache
def _parts(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.name != "span") if is_dataclass(cls) else ()
