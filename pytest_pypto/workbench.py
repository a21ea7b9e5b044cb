"""What the fixtures of one test share: settings and variant on one side, the harness on the other."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from pytest_pypto.check.tolerance import Source
from pytest_pypto.failures import as_failure
from pytest_pypto.harness import claims
from pytest_pypto.harness import run as harness
from pytest_pypto.harness.arguments import given, need_compiled, need_golden, need_inputs
from pytest_pypto.harness.cache import CompileCache, GoldenCache, assembler_options, changed_config
from pytest_pypto.harness.case import Case
from pytest_pypto.harness.device import run_device
from pytest_pypto.harness.errors import ArgumentError, CannotRun, CaseError, CheckFailed
from pytest_pypto.harness.golden import Golden
from pytest_pypto.harness.golden import Source as GoldenSource
from pytest_pypto.harness.inputs import Inputs, make_inputs, ready_inputs
from pytest_pypto.harness.oracle import Run, script_of
from pytest_pypto.harness.signature import signature_of
from pytest_pypto.harness.stages import program_of, stages_of
from pytest_pypto.harness.store import Store
from pytest_pypto.harness.verdict import LayerResult, Verdict
from pytest_pypto.known import PHASES, failing_in
from pytest_pypto.markers import MarkerError, sanitizers_of, tolerance_of
from pytest_pypto.options import SANITIZERS, Settings
from pytest_pypto.record import record
from pytest_pypto.repeat import repeat_command
from pytest_pypto.selection import Variant


class SessionTools:
    """What all tests of a process share: the store and the two caches."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.compiles = CompileCache(self.store)
        self.goldens = GoldenCache(self.store)


@contextmanager
def plain_failures() -> Iterator[None]:
    """Turn mistakes of the test author into failures without the harness's traceback."""
    __tracebackhide__ = True
    try:
        yield
    except pytest.fail.Exception:
        raise  # one of the fixtures inside another: it is plain already
    except (CaseError, MarkerError, CannotRun) as exc:
        raise as_failure(exc, f"pypto: {exc}") from None


class short_traces:
    """`with short_traces(full): ...`: an error that the compiler means for the author ends at the author's line.

    The frames of the compiler are dropped, unless `full`; errors that are no words to the author (an assertion, a
    KeyError) keep them.
    """

    def __init__(self, full: bool) -> None:
        self.full = full

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, exc: BaseException | None, trace: TracebackType | None) -> None:
        __tracebackhide__ = True
        if exc is not None and not self.full and is_message(exc):
            raise exc.with_traceback(None)


def is_message(exc: BaseException) -> bool:
    """Whether PyPTO raised it for the author: a class of its own that is not about a broken assumption inside."""
    rooms = type(exc).__module__.removeprefix("pytest_pypto.").split(".")
    return rooms[0] == "pypto" and type(exc).__name__ != "InternalError"


class Workbench:
    """The fixtures' functions for one test.

    Attributes:
        item: the test.
        settings: of the session.
        variant: platform, split and direction of the test.
        config: its `RunConfig`.
        kept: how many of its checks were kept so far.
    """

    def __init__(
        self, item: pytest.Item, settings: Settings, variant: Variant, config: Any, tools: SessionTools
    ) -> None:
        self.item, self.settings, self.variant, self.config, self.tools = item, settings, variant, config, tools
        self.kept = 0

    @property
    def seed(self) -> int:
        """Seed of the test: the base seed mixed with the test's name."""
        return zlib.crc32(self.item.nodeid.encode("utf-8", "surrogateescape")) ^ int(self.settings["pypto_seed"])

    @property
    def platform(self) -> str:
        """Platform id of the test."""
        return str(self.config.platform)

    # -- fixtures ------------------------------------------------------------------------------------------------

    def compile(self, program: Any, *samples: Any, **fields: Any) -> Any:
        """Compile through the test's `RunConfig`.

        Args:
            program: a `@pl.program`, or a `@pl.jit` kernel.
            samples: sample arguments of a jit kernel; none for a program.
            fields: fields of `RunConfig` to change for this compile.

        Returns:
            The `CompiledProgram`. Equal programs with equal settings give the same artifact.

        Raises:
            Exception: whatever the compiler raises.
        """
        __tracebackhide__ = True
        with plain_failures():
            config = changed_config(self.config, fields)
        if hasattr(program, "functions"):
            if samples:
                raise _wrong_use("pypto_compile takes sample arguments for @pl.jit kernels only")
            with failing_in(self.item, "compile"), self._short_traces():
                made = self.tools.compiles.compile(program, {**config.compile_kwargs(), **assembler_options()})
            return self._noted(made)
        if hasattr(program, "compile"):
            with failing_in(self.item, "compile"), self._short_traces():
                return self._noted(program.compile(*samples, config=config))
        raise _wrong_use(f"pypto_compile takes a @pl.program or a @pl.jit kernel, got {given(program)}")

    def inputs(
        self, compiled: Any, *, seed: int | None = None, dims: Mapping[str, int] | None = None, **own: Any
    ) -> Inputs:
        """Seeded arguments that tell rows, columns and lanes apart; see `make_inputs`."""
        __tracebackhide__ = True
        with plain_failures():
            need_compiled("pypto_inputs", compiled, program_too=True)
            return make_inputs(compiled, seed=self.seed if seed is None else seed, dims=dims, **own)

    def golden(self, function: GoldenSource, inputs: Mapping[str, Any]) -> Golden:
        """Expected values from a plain function on clones; see `compute_golden`."""
        __tracebackhide__ = True
        with plain_failures():
            need_golden("pypto_golden", function, "first")
            need_inputs("pypto_golden", inputs)
            return function if isinstance(function, Golden) else self.tools.goldens.golden(function, inputs)

    def oracle(self, program: Any, inputs: Mapping[str, Any], *, after: str | None = None) -> Run:
        """Run a program through `torch_codegen`.

        Args:
            program: a `CompiledProgram` or an `ir.Program`.
            inputs: arguments by name; never changed.
            after: name of a pass, or of a stage (`04_after_ConvertToSSA`); the front-end program by default.

        Returns:
            All tensors after the run by name (`.tensors`), and what was returned (`.returned`).
        """
        __tracebackhide__ = True
        with plain_failures():
            need_compiled("pypto_oracle", program, program_too=True)
            need_inputs("pypto_oracle", inputs)
            ready = ready_inputs(program, inputs)
            self._claims(program)
            with failing_in(self.item, "oracle"):
                return script_of(self._stage(program, after)).run(ready)

    def device(
        self,
        compiled: Any,
        inputs: Mapping[str, Any],
        *,
        config: Any = None,
        sanitize: bool | None = None,
        device: Mapping[str, Any] | None = None,
    ) -> Run:
        """Run a compiled program once on the device, with sanitizers.

        Args:
            compiled: a `CompiledProgram`.
            inputs: arguments by name; never changed.
            config: a `RunConfig` instead of the test's.
            sanitize: whether to look for races, uninitialised reads and the like; by default what the marker or
                the command line says.
            device: further settings of the simulated device, e.g. {"order": "random", "seed": 7}.

        Returns:
            All tensors after the run by name (`.tensors`), and what was returned (`.returned`).
        """
        __tracebackhide__ = True
        with plain_failures():
            need_compiled("pypto_device", compiled)
            need_inputs("pypto_device", inputs)
            ready = ready_inputs(compiled, inputs)
            self._claims(compiled)
            with failing_in(self.item, "device"):
                run, findings = run_device(
                    Case(
                        compiled,
                        ready,
                        None,
                        self.platform,
                        config=config or self.config,
                        **self._machine(sanitize, device),
                    )
                )
        errors = [f for f in findings if f.severity == "error"]
        if errors:
            layer = LayerResult("device", "failed", errors[0].kind, self.platform, findings=findings)
            text = "pypto: " + "\n".join(f"{f.kind} [{f.where}]: {f.message}" for f in errors)
            with failing_in(self.item, "device"):
                raise as_failure(CheckFailed(text, Verdict(self.item.nodeid, self.platform, (layer,))))
        return run

    def _machine(self, sanitize: bool | None, device: Mapping[str, Any] | None) -> dict[str, Any]:
        """Fields of a `Case` for the simulated device: arguments before the marker, the marker before the options."""
        own = dict(self.settings["pypto_order"]) | dict(device or {})
        if sanitize is None:
            marked = sanitizers_of(self.item)
            kinds = self.settings["pypto_sanitize"] if marked is None else marked
            sanitize = bool(kinds)
            if sanitize and len(kinds) < len(SANITIZERS):
                own.setdefault("sanitize", kinds)
        return {"sanitize": sanitize, "device": own}

    def check(
        self,
        compiled: Any,
        inputs: Mapping[str, Any],
        golden: harness.Reference,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        tolerances: Mapping[str, tuple[float, float]] | None = None,
        layers: Sequence[str] | None = None,
        equal_nan: bool = False,
        sanitize: bool | None = None,
        device: Mapping[str, Any] | None = None,
    ) -> Verdict:
        """Check a compiled program in every way; see `pytest_pypto.check`. Fails the test with the report."""
        __tracebackhide__ = True
        options: dict[str, Any] = {} if layers is None else {"layers": layers}
        with plain_failures():
            need_compiled("pypto_check", compiled)
            need_inputs("pypto_check", inputs)
            need_golden("pypto_check", golden)
            inputs = ready_inputs(compiled, inputs)
            case = harness.prepare(
                compiled,
                inputs,
                golden if isinstance(golden, Golden) else self.golden(golden, inputs),
                self.platform,
                rtol,
                atol,
                tolerances,
                name=self.item.nodeid,
                split=self.variant.split or "NONE",
                direction=self.variant.direction,
                split_claimed=bool(self.variant.split),
                config=self.config,
                sources=self._sources(compiled),
                comparator=self._comparator,
                equal_nan=equal_nan,
                **self._machine(sanitize, device),
                **options,
            )
            verdict = harness.run_case(case)
        return self._conclude(case, verdict)

    # -- helpers -------------------------------------------------------------------------------------------------

    def _stage(self, program: Any, after: str | None) -> Any:
        if after is None:
            found = program_of(program)
            return found if found is not None else stages_of(program, self.platform)[0].program
        stages = stages_of(program, self.platform)
        for stage in reversed(stages):
            if after in (stage.name, stage.pass_name):
                return stage.program
        raise CaseError(f"no pass is called {after!r}; the stages are {', '.join(s.name for s in stages)}")

    def _short_traces(self) -> short_traces:
        return short_traces(bool(self.item.config.getoption("fulltrace", False)))

    def _noted(self, compiled: Any) -> Any:
        claim = claims.current()
        claim.compiled.append(compiled)
        claim.last_word = partial(self.finish, claim)
        return compiled

    def _claims(self, compiled: Any) -> None:
        claim = claims.current()
        claim.checks += 1
        if claim and not hasattr(compiled, "functions"):
            self._keeps(claim, compiled)

    def _keeps(self, claim: claims.Claim, compiled: Any) -> None:
        for finding in claim.findings(stages_of(compiled, self.platform)[-1].program):
            raise CaseError(finding.message)

    def finish(self, claim: claims.Claim) -> None:
        """At the end of a test that passed and checked nothing: hold what it compiled to its claim.

        Raises:
            Failed: no compiled program keeps the claim.
        """
        problem: CaseError | None = None
        with plain_failures():
            for compiled in claim.compiled:
                try:
                    return self._keeps(claim, compiled)
                except CaseError as exc:
                    problem = problem or exc
                except CannotRun:
                    return None
            if problem is not None:
                raise problem

    def _sources(self, compiled: Any) -> dict[str, list[Source]]:
        """Everything but the argument that may set a tolerance."""
        marked = tolerance_of(self.item)
        sources: dict[str, list[Source]] = {"": []}
        for name in {*marked.rtol, *marked.atol, ""}:
            sources.setdefault(name, []).append(Source("marker", marked.rtol.get(name), marked.atol.get(name)))
        for key in ("rtol", "atol"):
            origin = self.settings.origin(f"pypto_{key}")
            if origin != "default":
                sources[""].append(Source(origin, **{key: self.settings[f"pypto_{key}"]}))
        sources[""].append(config_source(self.config))
        for param in signature_of(compiled).outputs:
            own = self.item.config.hook.pytest_pypto_tolerance(
                item=self.item, output=param.name, dtype=str(param.torch_dtype)[6:]
            )
            if own is not None:
                sources.setdefault(param.name, []).append(Source("plugin", *own))
        return sources

    def _comparator(self, name: str, actual: Any, expected: Any) -> Any:
        return self.item.config.hook.pytest_pypto_compare(item=self.item, output=name, actual=actual, expected=expected)

    def _conclude(self, case: Case, verdict: Verdict) -> Verdict:
        __tracebackhide__ = True
        from pytest_pypto.harness.keep import keep
        from pytest_pypto.report.text import render

        verdict = verdict.with_(repro=repeat_command(self.item, self.settings, self.platform))
        choice = self.settings["pypto_keep"]
        if choice == "all" or (choice == "fail" and not verdict.passed):
            self.kept += 1
            name = self.item.nodeid if self.kept == 1 else f"{self.item.nodeid} check {self.kept}"
            try:
                verdict = keep(case, verdict, self.item.config.rootpath / "pypto_artifacts", name)
            except OSError as exc:
                verdict = verdict.with_(not_kept=f"{type(exc).__name__}: {exc}")
        record(self.item, verdict)
        self.item.config.hook.pytest_pypto_verdict(item=self.item, verdict=verdict)
        if not verdict.passed:
            text = render(verdict, colour=coloured(self.item.config))
            with failing_in(self.item, phase_named(verdict.failed_layers[0].layer)):
                raise as_failure(CheckFailed(text, verdict))
        with plain_failures():
            return harness.demanded(verdict)


for _name in ("compile", "inputs", "golden", "oracle", "device", "check"):
    getattr(Workbench, _name).__qualname__ = f"pypto_{_name}"  # what Python calls it when arguments are missing


def _wrong_use(text: str) -> ArgumentError:
    return as_failure(ArgumentError(f"pypto: {text}"))


def phase_named(layer: str) -> str:
    """Phase of a failed layer for the file of known failures; a claim of the test is the test's own."""
    return layer if layer in PHASES else "test"


def coloured(config: pytest.Config) -> bool:
    """Whether this process writes to a terminal with colours, and to nothing else that would get them."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    return bool(reporter is not None and reporter.hasmarkup and not getattr(config.option, "xmlpath", None))


def config_source(config: Any) -> Source:
    """Tolerances that a `RunConfig` sets; its defaults count as not set."""
    import dataclasses

    defaults = {f.name: f.default for f in dataclasses.fields(config)} if dataclasses.is_dataclass(config) else {}
    numbers = [getattr(config, key, None) for key in ("rtol", "atol")]
    chosen = [None if v == defaults.get(k) else v for k, v in zip(("rtol", "atol"), numbers, strict=True)]
    return Source("RunConfig", *chosen)
