"""Running programs in memory: scripts are generated once per program, compiled once per text, and never written.

The preamble is compiled once per process; every run executes it in a namespace of its own.
"""

from __future__ import annotations

import functools
import hashlib
import linecache
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from ..errors import attach_note
from ..ir.program import Function, Program
from . import catalog
from .emit.function import PLAIN, FunctionText, Options
from .script import Script, write_script
from .select import argument_key, select_entry_function

_KEPT = 256
_scripts: OrderedDict[tuple[int, Options], tuple[Program | Function, Script]] = OrderedDict()
_codes: OrderedDict[str, CodeType] = OrderedDict()
_places: dict[str, dict[int, str]] = {}
_lock = threading.RLock()

Trace = Callable[[str, str, Any], None]


def script_of(node: Program | Function, options: Options = PLAIN) -> Script:
    """The script of a program, generated once while the program object is in use."""
    key = (id(node), options)
    with _lock:
        if key not in _scripts:
            _scripts[key] = (node, write_script(node, options))
            if len(_scripts) > _KEPT:
                _scripts.popitem(last=False)
        _scripts.move_to_end(key)
        return _scripts[key][1]


@functools.cache
def _preamble() -> CodeType:
    text = catalog.whole()
    _register("<pypto preamble>", text)
    return compile(text, "<pypto preamble>", "exec")


def _register(filename: str, text: str) -> None:
    """Let tracebacks show the lines of a text."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)


def _code(function: FunctionText) -> CodeType:
    with _lock:
        return _compiled(function)


def _compiled(function: FunctionText) -> CodeType:
    if function.text not in _codes:
        digest = hashlib.sha256(function.text.encode()).hexdigest()[:12]
        filename = f"<pypto {function.name} {digest}>"
        _codes[function.text] = compile(function.text, filename, "exec")
        _register(filename, function.text)
        if len(_codes) > 8 * _KEPT:
            _, old = _codes.popitem(last=False)
            linecache.cache.pop(old.co_filename, None)
            _places.pop(old.co_filename, None)
    code = _codes[function.text]
    _places[code.co_filename] = function.positions
    _codes.move_to_end(function.text)
    return code


def place_of(filename: str, line: int) -> str:
    """The kernel source place of a script line and its text."""
    text = linecache.getline(filename, line).strip()
    place = _places.get(filename, {}).get(line - 1, "")
    return f"{place}: {text}" if place else text


def namespace_of(script: Script, *, schedule_seed: int | None = None, **settings: Any) -> dict[str, Any]:
    """A fresh namespace in which the functions of a script are callable.

    `settings` are names of the preamble without their underscore in lower case, such as `leftover="error"`.
    """
    space: dict[str, Any] = {}
    exec(_preamble(), space)
    space["_SOURCE_OF"] = place_of
    space["_SCHEDULE_SEED"] = schedule_seed
    for name, value in settings.items():
        if f"_{name.upper()}" not in space:
            raise ValueError(f"unknown oracle setting {name!r}; the preamble has no _{name.upper()}")
        space[f"_{name.upper()}"] = value
    if script.meta:
        exec(script.meta, space)
    for function in script.functions:
        exec(_code(function), space)
    return space


def run_oracle(
    node: Program | Function,
    args: Sequence[Any] | Mapping[str, Any],
    *,
    entry: str | None = None,
    schedule_seed: int | None = None,
    check_shapes: bool = False,
    trace: Trace | None = None,
    **settings: Any,
) -> Any:
    """Run a program on torch tensors, which outputs are written into, and return what its entry returns.

    Args:
        node: a program, or a function on its own.
        args: the arguments in order, or by parameter name (with or without SSA suffix).
        entry: the function to run; by default the only one or the first orchestration.
        schedule_seed: varies the order in which cores run; the same seed gives the same run.
        check_shapes: assert types, and shapes and types after each assignment.
        trace: called with function, variable and value after each assignment and merge.
        settings: preamble settings, e.g. `leftover="error"`, `bounded_pipes=True`.

    Raises:
        ValueError: no entry, or something that has no script.
        KeyError: an argument is missing.
        TypeError: too few or too many arguments.
        RuntimeError: a group failed or can not go on.
    """
    import torch

    script = script_of(node, Options(check_shapes, trace=trace is not None))
    function = select_entry_function(node, entry)
    values = _values(function, args)
    space = namespace_of(script, schedule_seed=schedule_seed, **settings)
    space["_TRACE"] = trace
    try:
        with torch.no_grad():
            return space[function.name](*values)
    except Exception as exc:  # raised again, with the kernel line
        _explain(exc)
        raise


def _values(function: Function, args: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    names = [p.name_hint for p in function.params]
    if isinstance(args, Mapping):
        return [args[argument_key(name, args)] for name in names]
    if len(args) != len(names):
        raise TypeError(f"'{function.name}' takes {len(names)} arguments ({', '.join(names)}), got {len(args)}")
    return list(args)


def _explain(exc: BaseException) -> None:
    """Add the kernel line to an error that a script raised."""
    places = []
    trace = exc.__traceback__
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if filename in _places:
            places.append(place_of(filename, trace.tb_lineno))
        trace = trace.tb_next
    if places:
        attach_note(exc, f"in the script of the kernel: {places[-1]}")
