"""Checking every pass dump of a program against expected tensors."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import attach_note
from ..ir.program import Function, Program
from .compare import Difference, compare, flat_return
from .emit.function import Options
from .errors import UnsupportedOpError
from .runner import namespace_of, script_of
from .select import SSA_SUFFIX_RE, argument_key, select_entry_function

if TYPE_CHECKING:
    import torch

_RULE = "=" * 20


@dataclass
class PassResult:
    """One dump: its compared values, or the error that stopped it."""

    file: Path
    node: Program | Function | None = None
    differences: list[Difference] = field(default_factory=list)
    error: Exception | None = None
    same_as: str | None = None
    """Stem of an earlier dump with the same script, whose result this is."""

    @property
    def good(self) -> bool:
        """True when the dump ran and every value is close."""
        return self.error is None and all(d.close for d in self.differences)

    def status(self) -> str:
        """One word or sentence for tables."""
        if self.error is not None:
            first = str(self.error).splitlines()[0] if str(self.error) else ""
            return f"{type(self.error).__name__}: {first}"
        bad = [d.key for d in self.differences if not d.close]
        return f"differs: {', '.join(bad)}" if bad else "ok"


@dataclass
class PassReport:
    """All dumps of a program, in order."""

    results: list[PassResult]
    located: str = ""
    """The first variable that differs between the last good and the first bad dump, in words."""

    @property
    def first_bad(self) -> PassResult | None:
        """The first dump that failed, or None."""
        return next((r for r in self.results if not r.good), None)

    @property
    def last_good(self) -> PassResult | None:
        """The dump before the first bad one, or None."""
        good = None
        for result in self.results:
            if not result.good:
                return good
            good = result
        return good

    def summary(self) -> str:
        """The first bad pass, where the numbers part, and one line per dump."""
        bad, good = self.first_bad, self.last_good
        if bad is None:
            return f"all {len(self.results)} dumps agree"
        lines = [f"first bad pass: {bad.file.stem}" + (f" (last good: {good.file.stem})" if good else "")]
        lines += [self.located] if self.located else []
        width = max(len(r.file.stem) for r in self.results)
        return "\n".join([*lines, *(f"  {r.file.stem:<{width}}  {r.status()}" for r in self.results)])


def validate_pass_ir_codegen_results(
    ir_dir: str | Path,
    tensors: dict[str, torch.Tensor | int | float],
    expected: dict[str, Any],
    *,
    rtol: float = 5e-2,
    atol: float = 5e-2,
    equal_nan: bool = False,
    entry: str | None = None,
    stream: TextIO | None = None,
) -> None:
    """Run the script of every dump on clones of `tensors` and compare with `expected`.

    For each file a header and one line per key are printed. A dump whose script equals an earlier one is not run again.

    Args:
        ir_dir: a directory of dumps (its `.py` files, by name) or one dump.
        tensors: arguments of the entry by parameter name: tensors, ints or floats.
        expected: values after the run by name; `return` and `return[i]` name what the entry returns.
        rtol, atol: tolerance of the comparison.
        equal_nan: whether NaN equals NaN.
        entry: the function to run; by default the only one or the first orchestration.
        stream: where to print; standard output by default.

    Raises:
        TypeError, ValueError: wrong arguments, an empty `expected`, a tensor that is no parameter of the entry, a file
            that is no dump, a program without entry.
        FileNotFoundError: no such path.
        KeyError: a parameter without a value.
        ParserError, SyntaxError: a dump that does not load; the others are tried first.
        AssertionError: values that differ, with the file, the key and the first bad pass.
        RuntimeError: a script that failed, with the file.
    """
    _check_arguments(tensors, expected, rtol, atol)
    report = check_passes(
        _files(Path(ir_dir)), tensors, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, entry=entry,
        out=stream or sys.stdout,
    )  # fmt: skip
    bad = report.first_bad
    if bad is None:
        return
    notes = "\n" + report.summary()
    if bad.error is not None:
        error = _with_file(bad, notes)
        raise error from (None if error is bad.error else bad.error)
    raise AssertionError(_mismatch(bad, rtol, atol) + notes)


def check_passes(
    files: list[Path],
    tensors: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    rtol: float,
    atol: float,
    equal_nan: bool = False,
    entry: str | None = None,
    out: TextIO | None = None,
) -> PassReport:
    """The results of all dumps; what goes wrong in one does not keep the others from running.

    Raises:
        KeyError: a parameter without a value.
        ValueError: a file that does not load, a program without entry, nothing to compare, a tensor that no entry
            has a parameter for, an expected key without a value.
    """
    known: dict[tuple[str, str], PassResult] = {}
    loaded: dict[bytes, Any] = {}
    results = [_load(file, entry, loaded) for file in files]
    if not expected:
        # The dumps still run, so that a crash is seen; a program may have nothing but returned values to compare.
        warnings.warn(
            "expected is empty: nothing is compared; give the wanted values by parameter name, or as 'return'",
            stacklevel=3,
        )
    _check_names(results, tensors, entry)
    for result in results:
        if result.error is None:
            _run(result, known, tensors, expected, (rtol, atol, equal_nan), entry)
        if out is not None:
            out.write("".join(f"{line}\n" for line in _printed(result)))
    report = PassReport(results)
    bad, good = report.first_bad, report.last_good
    if bad is not None and good is not None and bad.node is not None and good.node is not None:
        from .localize import first_difference

        report.located = first_difference(good.node, bad.node, tensors, rtol, atol, entry)
    return report


def _load(file: Path, entry: str | None, loaded: dict[bytes, Any]) -> PassResult:
    """The program of a dump; dumps with the same text share one."""
    from ..language.parser import loads
    from ..language.parser.diagnostics import ParserError

    text = file.read_bytes()
    try:
        if text not in loaded:
            loaded[text] = loads(str(file))
    except (ParserError, SyntaxError) as exc:
        return PassResult(file, error=exc)
    node = loaded[text]
    if not isinstance(node, (Program, Function)):
        raise ValueError(f"{file}: holds a {type(node).__name__}, not an ir.Program or ir.Function")
    select_entry_function(node, entry)
    result = PassResult(file, node)
    try:
        script_of(node, Options(check_shapes=True))
    except (TypeError, ValueError, LookupError) as exc:  # unsupported operators are ValueErrors
        result.error = exc
    return result


def _check_names(results: Sequence[PassResult], tensors: Mapping[str, Any], entry: str | None) -> None:
    """Every parameter has a value, and every value belongs to a parameter of the entry of some dump."""
    names: dict[str, None] = {}
    used: set[str] = set()
    for node in {id(r.node): r.node for r in results if r.node is not None}.values():
        for param in select_entry_function(node, entry).params:
            names[SSA_SUFFIX_RE.sub("", param.name_hint)] = None
            used.add(argument_key(param.name_hint, tensors))
    unknown = [key for key in tensors if key not in used]
    if unknown:
        raise ValueError(
            f"tensors has {', '.join(map(repr, unknown))}, which the entry has no parameter for; "
            f"its parameters: {', '.join(names) or 'none'}"
        )


def _run(
    result: PassResult,
    known: dict[tuple[str, str], PassResult],
    tensors: Mapping[str, Any],
    expected: Mapping[str, Any],
    tolerance: tuple[float, float, bool],
    entry: str | None,
) -> None:
    assert result.node is not None
    script, function = script_of(result.node, Options(check_shapes=True)), select_entry_function(result.node, entry)
    key = (script.body, function.name)
    if key in known:
        result.differences, result.error = known[key].differences, known[key].error
        result.same_as = known[key].file.stem
        return
    known[key] = result
    values = _clones(tensors)
    args = [values[argument_key(p.name_hint, values)] for p in function.params]
    try:
        returned = _call(script, function.name, args)
    except Exception as exc:  # whatever a script raises belongs to its dump; the other dumps still run
        result.error = exc
        return
    after = values | flat_return(returned)
    for name, want in expected.items():
        if name not in after:
            raise ValueError(f"{result.file}: expected key '{name}' not found in tensors after execution")
        result.differences.append(compare(name, after[name], want, *tolerance))


def _call(script: Any, name: str, args: list[Any]) -> Any:
    import torch

    space = namespace_of(script)
    if not callable(space.get(name)):
        raise ValueError(f"entry '{name}' is not callable in the generated script")
    with torch.no_grad():
        return space[name](*args)


def _clones(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v.clone() if hasattr(v, "clone") else v for k, v in tensors.items()}


def _printed(result: PassResult) -> list[str]:
    """The header and the lines of one dump, up to the first value that differs."""
    lines = [f"{_RULE} {result.file.stem} {_RULE}"]
    for difference in result.differences:
        lines.append(difference.line())
    return lines


def _mismatch(result: PassResult, rtol: float, atol: float) -> str:
    bad = next(d for d in result.differences if not d.close)
    if bad.problem:
        return f"{result.file}: tensor mismatch for key '{bad.key}', {bad.problem}"
    return (
        f"{result.file}: tensor mismatch for key '{bad.key}', max abs diff {bad.max_abs_diff:.6e} "
        f"exceeds tolerance (rtol={rtol}, atol={atol})"
    )


def _with_file(result: PassResult, notes: str) -> Exception:
    """The error of a dump, with the file in front: an assertion stays one, an unsupported operator too.

    An error of the loader names the file already.
    """
    error = result.error
    if result.node is None and error is not None:
        attach_note(error, notes)
        return error
    text = f"{result.file}: {error}{notes}"
    if isinstance(error, AssertionError):
        return AssertionError(text)
    if isinstance(error, UnsupportedOpError):
        return UnsupportedOpError(text)
    return RuntimeError(
        text if isinstance(error, RuntimeError) else f"{result.file}: {type(error).__name__}: {error}{notes}"
    )


def _check_arguments(tensors: Any, expected: Any, rtol: Any, atol: Any) -> None:
    import torch

    for name, values in (("tensors", tensors), ("expected", expected)):
        if not isinstance(values, dict):
            raise TypeError(f"{name} must be dict[str, Tensor], got {type(values).__name__}")
        for key, value in values.items():
            if not isinstance(key, str):
                raise TypeError(f"{name} key must be str, got {type(key).__name__}")
            if not isinstance(value, (torch.Tensor, int, float)) and not key.startswith("return"):
                raise TypeError(f"{name}['{key}'] must be torch.Tensor, got {type(value).__name__}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise ValueError(f"{name} must be a non-negative float, got {value!r}")


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"IR path does not exist: {path}")
    if path.is_file():
        if path.suffix != ".py":
            raise ValueError(f"IR file must be a .py file, got {path}")
        return [path]
    files = sorted(p for p in path.iterdir() if p.suffix == ".py" and p.is_file())
    if not files:
        raise ValueError(f"No .py IR files found under {path}")
    return files
