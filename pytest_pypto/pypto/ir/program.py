"""Functions and programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .enums import FunctionType, Level, ParamDirection, Role, SplitMode
from .expr import GlobalVar, IRNode, Var
from .span import UNKNOWN, Span
from .stmt import Stmt
from .types import Type

DERIVED_LEVEL_ROLE: dict[FunctionType, tuple[Level, Role]] = {
    FunctionType.Orchestration: (Level.CHIP, Role.Orchestrator),
    FunctionType.Graph: (Level.CHIP, Role.Orchestrator),
    FunctionType.InCore: (Level.CHIP_DIE, Role.SubWorker),
    FunctionType.AIC: (Level.AIC, Role.SubWorker),
    FunctionType.AIV: (Level.AIV, Role.SubWorker),
    FunctionType.Group: (Level.CORE_GROUP, Role.SubWorker),
}
"""Level and role that a function kind implies."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Function(IRNode):
    """A function. `params` and `param_directions` run in parallel; level and role are derived from the kind.

    Raises:
        ValueError: an explicit level or role contradicts the function kind.
    """

    name: str
    params: tuple[Var, ...]
    return_types: tuple[Type, ...]
    body: Stmt
    span: Span
    func_type: FunctionType
    level: Level | None
    role: Role | None
    attrs: dict[str, Any]
    requires_runtime_binding: bool
    param_directions: tuple[ParamDirection, ...]

    def __init__(
        self,
        name: str,
        params: Sequence[Var | tuple[Var, ParamDirection]],
        return_types: Sequence[Type],
        body: Stmt,
        span: Span = UNKNOWN,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Mapping[str, Any] | None = None,
        requires_runtime_binding: bool = False,
    ) -> None:
        pairs = [p if isinstance(p, tuple) else (p, ParamDirection.In) for p in params]
        put = object.__setattr__
        put(self, "name", name)
        put(self, "params", tuple(v for v, _ in pairs))
        put(self, "param_directions", tuple(d for _, d in pairs))
        put(self, "return_types", tuple(return_types))
        put(self, "body", body)
        _check_parts(self)
        put(self, "span", span)
        put(self, "func_type", type)
        level_, role_ = _derive(name, type, level, role)
        put(self, "level", level_)
        put(self, "role", role_)
        put(self, "attrs", dict(attrs or {}))
        put(self, "requires_runtime_binding", requires_runtime_binding)

    @property
    def split(self) -> SplitMode | None:
        """The `split` attribute as a mode; None when absent or NONE."""
        value = self.attrs.get("split", 0)
        code = value.value if isinstance(value, SplitMode) else int(value)
        return SplitMode(code) if code else None

    @property
    def pairs(self) -> tuple[tuple[Var, ParamDirection], ...]:
        """Parameters with their directions, as the constructor takes them."""
        return tuple(zip(self.params, self.param_directions, strict=True))

    def with_(self, **changes: Any) -> Function:
        """A copy with some constructor arguments replaced.

        Level and role are derived anew when `type` changes and neither is given.
        """
        kind = changes.get("type", self.func_type)
        keep = kind is self.func_type
        fields: dict[str, Any] = {
            "name": self.name,
            "params": self.pairs,
            "return_types": self.return_types,
            "body": self.body,
            "span": self.span,
            "type": self.func_type,
            "level": self.level if keep else None,
            "role": self.role if keep else None,
            "attrs": self.attrs,
            "requires_runtime_binding": self.requires_runtime_binding,
        }
        return Function(**(fields | changes))


def _check_parts(made: Function) -> None:
    """Refuse what is no parameter, type or body where the function is made, not where it is printed."""
    for what, parts, kind in (("params", made.params, Var), ("return_types", made.return_types, Type)):
        for part in parts:
            if not isinstance(part, kind):
                raise TypeError(f"{what} of Function {made.name!r} must be ir.{kind.__name__}, got {part!r}")
    if not isinstance(made.body, Stmt):
        raise TypeError(f"the body of Function {made.name!r} must be an ir.Stmt, got {made.body!r}")


def _derive(name: str, kind: FunctionType, level: Level | None, role: Role | None) -> tuple[Level | None, Role | None]:
    implied = DERIVED_LEVEL_ROLE.get(kind)
    if implied is None:
        return level, role
    for what, given, derived in (("level", level, implied[0]), ("role", role, implied[1])):
        if given is not None and given is not derived:
            raise ValueError(
                f"Function '{name}' has func_type={kind.name} which implies {what}={derived.name}, "
                f"but explicit {what}={given.name} was provided"
            )
    return implied


class FunctionMap(Mapping[GlobalVar, Function]):
    """Functions of a program by their global variable, sorted by name; also indexable by name."""

    __slots__ = ("_by_name", "_vars")

    def __init__(self, functions: Sequence[Function]) -> None:
        ordered = sorted(functions, key=lambda f: f.name)
        self._by_name = {f.name: f for f in ordered}
        self._vars = {f.name: GlobalVar(f.name) for f in ordered}

    def __getitem__(self, key: GlobalVar | str) -> Function:
        return self._by_name[key if isinstance(key, str) else key.name]

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self._vars.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def var(self, name: str) -> GlobalVar | None:
        """The global variable of the function called `name`, or None."""
        return self._vars.get(name)

    def get_name(self, name: str) -> Function | None:
        """The function called `name`, or None."""
        return self._by_name.get(name)


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Program(IRNode):
    """Functions that call each other.

    Raises:
        ValueError: two functions have the same name.
    """

    functions: FunctionMap
    name: str
    span: Span = field(default=UNKNOWN)

    def __init__(
        self, functions: Sequence[Function] | Mapping[GlobalVar, Function], name: str = "", span: Span = UNKNOWN
    ) -> None:
        listed = list(functions.values()) if isinstance(functions, Mapping) else list(functions)
        seen: set[str] = set()
        for f in listed:
            if f.name in seen:
                raise ValueError(f"Program '{name}' has two functions called '{f.name}'; rename one")
            seen.add(f.name)
        put = object.__setattr__
        put(self, "functions", FunctionMap(listed))
        put(self, "name", name)
        put(self, "span", span)

    def get_function(self, name: str) -> Function | None:
        """The function called `name`, or None."""
        return self.functions.get_name(name)

    def __getitem__(self, name: str) -> Function | None:
        return self.get_function(name)

    def get_global_var(self, name: str) -> GlobalVar | None:
        """The global variable of the function called `name`, or None."""
        return self.functions.var(name)

    def with_functions(self, functions: Sequence[Function]) -> Program:
        """The same program with other functions; itself when every function is the same object."""
        old = {f.name: f for f in self.functions.values()}
        if len(old) == len(functions) and all(old.get(f.name) is f for f in functions):
            return self
        return Program(functions, self.name, self.span)
