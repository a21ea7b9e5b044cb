"""One case: a compiled program with its data, expected values and tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_pypto.check.tolerance import Source, Tolerance, first_set, policy
from pytest_pypto.harness.errors import CaseError
from pytest_pypto.harness.golden import Golden
from pytest_pypto.harness.inputs import Inputs, ready_inputs
from pytest_pypto.harness.signature import Signature, signature_of
from pytest_pypto.harness.verdict import LAYERS

if TYPE_CHECKING:
    import torch

    from pytest_pypto.check.compare import TensorDiff
    from pytest_pypto.harness.oracle import Run

Comparator = Callable[[str, "torch.Tensor", "torch.Tensor"], "TensorDiff | None"]
RETURNED = "return value"


@dataclass(frozen=True)
class Case:
    """What a check works on.

    Attributes:
        compiled: a `CompiledProgram`.
        inputs: arguments; never changed.
        golden: expected values; None when no layer compares numbers.
        platform: platform id the device layer runs on.
        name: for reports.
        split, direction: names; a direction other than "" is checked against the lowered program.
        split_claimed: whether the split is checked against the lowered program, too.
        config: the `RunConfig` for the device, None for the artifact's own.
        sources: where tolerances may come from, strongest first; per output under its name, for all under "".
        equal_nan: whether NaN on both sides counts as equal.
        layers: which layers to run.
        comparator: may compare an output in its own way; None leaves it to the tolerance.
        sanitize: whether the device looks for races, uninitialised reads and the like.
        device: further settings of the simulated device, e.g. {"order": "random", "seed": 7}.
    """

    compiled: Any
    inputs: Inputs
    golden: Golden | None
    platform: str
    name: str = ""
    split: str = "NONE"
    direction: str = ""
    config: Any = None
    sources: Mapping[str, Sequence[Source]] = field(default_factory=dict)
    equal_nan: bool = False
    layers: tuple[str, ...] = LAYERS
    comparator: Comparator | None = None
    sanitize: bool = True
    device: Mapping[str, Any] = field(default_factory=dict)
    split_claimed: bool = False

    @property
    def signature(self) -> Signature:
        """Parameters of the program."""
        return self.inputs.signature

    def expectation(self) -> Golden:
        """The expected values.

        Raises:
            CaseError: the case has none.
        """
        if self.golden is None:
            raise CaseError("this layer compares numbers and needs a golden: pass pypto_golden(reference, inputs)")
        return self.golden


def make_case(compiled: Any, inputs: Mapping[str, Any], golden: Golden | None, platform: str, **options: Any) -> Case:
    """A case with checked inputs.

    Raises:
        CaseError: inputs do not fit the signature, the golden speaks of other names, or a layer name is wrong.
    """
    known = signature_of(compiled)
    ready = ready_inputs(compiled, inputs)
    if golden is not None:
        _fits(golden, ready)
    if "layers" in options:
        options["layers"] = checked_layers(options["layers"])
    _known_outputs(options.get("sources", {}), known)
    return Case(compiled, ready, golden, platform, **options)


def checked_layers(layers: Any) -> tuple[str, ...]:
    """The layers that a check asks for.

    Raises:
        CaseError: none, an unknown one, or a text instead of a list of names.
    """
    known = f"the layers are {', '.join(LAYERS)}"
    if isinstance(layers, str) or not isinstance(layers, Iterable):
        raise CaseError(f"layers={layers!r} is no list of layers; write layers=({str(layers)!r},); {known}")
    names = tuple(layers)
    if not names:
        raise CaseError(f"layers={layers!r} checks nothing; {known}; leave layers= out for all of them")
    wrong = [name for name in names if name not in LAYERS]
    if wrong:
        raise CaseError(f"no layer is called {wrong[0]!r}; {known}")
    return names


def _known_outputs(sources: Mapping[str, Sequence[Source]], signature: Signature) -> None:
    """Tolerances must be about outputs that exist."""
    outputs = [p.name for p in signature.outputs]
    for name in sources:
        if name and name not in outputs and not name.startswith(RETURNED):
            listed = ", ".join(map(repr, outputs)) or "none"
            origin = next((s.name for s in sources[name]), "tolerance")
            raise CaseError(
                f"the {origin} gives a tolerance of output {name!r}, which the program does not have; the outputs are "
                f"{listed}, and {RETURNED!r} for a value that is no parameter"
            )


def _fits(golden: Golden, inputs: Inputs) -> None:
    for name, value in golden.expected.items():
        if name not in inputs:
            raise CaseError(f"golden {golden.name!r} speaks of {name!r}; parameters: {', '.join(inputs)}")
        have, want = (getattr(x, "shape", None) for x in (value, inputs[name]))
        if have != want:
            raise CaseError(f"golden {golden.name!r} was made for other inputs: {name!r} is {have}, the input {want}")


def compare_run(case: Case, run: Run, facts: Accumulation) -> tuple[TensorDiff, ...]:
    """Compare everything the golden speaks of, and that nothing else changed.

    Args:
        case: the case.
        run: what was computed.
        facts: what the tolerance policy needs to know about the program.
    """
    golden = case.expectation()
    pairs = [(name, run.tensors[name], want) for name, want in golden.expected.items() if name in run.tensors]
    pairs += _returned_pairs(case, run)
    found = [_one(case, facts, name, have, want) for name, have, want in pairs]
    return tuple(found + _unchanged(case, run))


def _returned_pairs(case: Case, run: Run) -> list[tuple[str, Any, Any]]:
    """Returned values with their expectation; a returned parameter goes by its name, unless golden wrote it as well."""
    from pytest_pypto.harness.returns import items, returned_values

    golden = case.expectation()
    if golden.returned is None:
        return []
    want = items(golden.returned)
    have = returned_values(case, run, len(want))
    labels = [RETURNED] if len(want) == 1 else [f"{RETURNED} {i}" for i in range(len(want))]
    return [
        (name if name and name not in golden.expected else label, _tensor(h), _tensor(w))
        for label, (name, h), w in zip(labels, have, want, strict=True)
    ]


def _tensor(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, bool):
        return torch.tensor(value)
    return torch.tensor(value, dtype=torch.int64 if isinstance(value, int) else torch.float32)


def _one(case: Case, facts: Accumulation, name: str, have: Any, want: Any) -> TensorDiff:
    from pytest_pypto.check.compare import compare

    own = case.comparator(name, have, want) if case.comparator is not None else None
    if own is not None:
        return own
    return compare(
        name,
        have,
        want,
        tolerance_of(case, facts, name, want),
        equal_nan=case.equal_nan,
        layout=facts.layout(name),
        before=case.inputs.get(name),
    )


def tolerance_of(case: Case, facts: Accumulation, name: str, expected: Any) -> Tolerance:
    """The tolerance of one output, with where each number came from."""
    from pytest_pypto.check.compare import dtype_name, rms

    sources = [*case.sources.get(name, ()), *case.sources.get("", ())]
    sources.sort(key=lambda source: RANK.get(source.name, len(RANK)))
    fallback = policy(dtype_name(expected.dtype), rms(expected), facts.length, facts.narrowest)
    return first_set(sources, fallback)


RANK = {name: rank for rank, name in enumerate(("argument", "marker", "command line", "ini", "RunConfig", "plugin"))}
"""Precedence of tolerance sources."""


def _unchanged(case: Case, run: Run) -> list[TensorDiff]:
    """Inputs that the golden leaves alone must come back bit for bit."""
    from pytest_pypto.check.compare import compare

    exact = Tolerance(0.0, 0.0, "inputs must not change", "inputs must not change")
    found = []
    for param in case.signature.params:
        if param.shape is None or param.direction != "In" or param.name in case.expectation().expected:
            continue
        diff = compare(param.name, run.tensors[param.name], case.inputs[param.name], exact, equal_nan=True)
        if not diff.passed:
            found.append(diff)
    return found


def not_compared(case: Case) -> tuple[str, ...]:
    """Outputs that nothing is compared with."""
    from pytest_pypto.harness.returns import names_for

    if case.golden is None:
        return ()
    covered = set(case.golden.expected)
    if case.golden.returned is not None:
        covered.update(names_for(case) or ())
    return tuple(p.name for p in case.signature.outputs if p.name not in covered)


@dataclass(frozen=True)
class Accumulation:
    """Facts about a program for tolerances and places.

    Attributes:
        length: terms in its longest sum.
        narrowest: torch name of the narrowest floating type it casts to, None for none.
        tiles: block that one step writes, by output.
        split: name of the split mode.
    """

    length: int = 1
    narrowest: str | None = None
    tiles: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    split: str = "NONE"

    def layout(self, name: str) -> Any:
        """Tile and split of an output."""
        from pytest_pypto.check.locate import Layout

        return Layout(self.tiles.get(name), self.split)
