"""The pytest plugin: hooks and fixtures, nothing else.

Nothing here imports torch, numpy or PyPTO before a test asks for a fixture that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_pypto import claimed, collected, hookspec, known, known_update, markers, options, selection, toolchain
from pytest_pypto.collector import ReportCollector, Totals
from pytest_pypto.global_state import GlobalState
from pytest_pypto.record import forget, record_noted
from pytest_pypto.selection import Variant


class State:
    """What the plugin knows in one session."""

    def __init__(self, settings: options.Settings) -> None:
        self.settings = settings
        self.totals = Totals()
        self.deselected = selection.Deselected()
        self.toolchain: toolchain.Toolchain | None = None
        self.tools: Any = None
        self.build_dir: Path | None = None
        self.process = GlobalState()


STATE = pytest.StashKey[State]()


def state_of(config: pytest.Config) -> State:
    """The session's state, made on first use."""
    state = config.stash.get(STATE, None)
    if state is None:
        state = config.stash[STATE] = State(options.read_settings(config))
        try:
            state.toolchain = toolchain.activate(state.settings["pypto_toolchain"])
        except toolchain.ToolchainError as exc:
            raise pytest.UsageError(f"--pypto-toolchain: {exc}") from None
    return state


# ---------------------------------------------------------------------------------------------------------------
# Session


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspec)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    state_of(early_config)  # conftest files may import pypto


def worker_count(config: pytest.Config) -> int:
    """Number of xdist workers when this session is one of them, otherwise 0."""
    given = getattr(config, "workerinput", None)
    return int(given["workercount"]) if given is not None else 0


def pytest_configure(config: pytest.Config) -> None:
    state = state_of(config)
    for line in markers.DOCS:
        config.addinivalue_line("markers", line)
    known.activate(config, state.settings)
    known_update.activate(config)
    if workers := worker_count(config):
        _pin_threads(workers)
    else:
        config.pluginmanager.register(ReportCollector(state.totals), "pypto-totals")


def _pin_threads(workers: int) -> None:
    """Share the processors between the workers: linear algebra with all threads in each is slower by orders."""
    share = str(max(1, (os.cpu_count() or 1) // workers))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, share)


def pytest_unconfigure(config: pytest.Config) -> None:
    state = config.stash.get(STATE, None)
    if state is not None and state.toolchain is not None:
        state.toolchain = None
        toolchain.deactivate()
    if state is not None and state.build_dir is not None:
        import shutil

        shutil.rmtree(state.build_dir, ignore_errors=True)


def pytest_report_header(config: pytest.Config) -> str:
    state = state_of(config)
    found = state.toolchain.describe() if state.toolchain else "no PyPTO"
    return f"pypto: {found}, {state.settings.header()}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    state = state_of(session.config)
    if state.totals.checks and not worker_count(session.config):
        from pytest_pypto.harness.store import Store

        Store(_cache_dir(session.config)).prune()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["pypto"] = {"deselected": dict(state.deselected.counts)}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", None) or {}
    state_of(node.config).totals.add_worker(output.get("pypto", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    state = state_of(config)
    lines = state.totals.lines()
    if state.totals.deselected:
        state.deselected.counts = state.totals.deselected
        lines.insert(0, state.deselected.line(state.settings).removeprefix("pypto: "))
    if lines:
        terminalreporter.ensure_newline()
        terminalreporter.section("pypto", sep="-")
        for line in lines:
            terminalreporter.write_line(line)


# ---------------------------------------------------------------------------------------------------------------
# Collection


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    selection.parametrize(metafunc, state_of(metafunc.config).settings, _unavailable(metafunc.config))


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    outcome: Any = yield
    report: pytest.CollectReport = outcome.get_result()
    if report.passed:
        collected.look_at(collector, report, _unavailable(collector.config))


def _unavailable(config: pytest.Config) -> selection.Unavailable:
    def why(platform: str) -> str | None:
        own: str | None = config.hook.pytest_pypto_unavailable(config=config, platform=platform)
        return own or selection.unavailable_platform(platform, state_of(config).toolchain)

    return why


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    state = state_of(config)
    state.deselected.take_from(config, items, state.settings)
    claimed.watch(config, items)


def pytest_report_collectionfinish(config: pytest.Config) -> str | list[str]:
    state = state_of(config)
    return state.deselected.line(state.settings) or []


# ---------------------------------------------------------------------------------------------------------------
# Tests


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    problem = collected.late_marker(item)
    if problem:
        pytest.fail(f"pypto: {problem}", pytrace=False)
    forget(item)
    state_of(item.config).process.before_test()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    state_of(item.config).process.after_test()
    record_noted(item)


# ---------------------------------------------------------------------------------------------------------------
# Fixtures


@pytest.fixture
def _pypto_variant(request: pytest.FixtureRequest) -> Variant:
    return getattr(request, "param", None) or selection.variant_of(request.node) or Variant()


@pytest.fixture
def pypto_platform(request: pytest.FixtureRequest, _pypto_variant: Variant) -> str:
    """Platform id of this test, e.g. "a2a3sim"."""
    first, *others = state_of(request.config).settings.platforms
    if others and not _pypto_variant.platform:
        request.node.warn(claimed.PytestPyptoWarning(claimed.FIRST_ONLY.format(first=first, others=", ".join(others))))
    return _pypto_variant.platform or first


@pytest.fixture
def pypto_split(_pypto_variant: Variant) -> Any:
    """Split mode of this test, a `pl.SplitMode`; NONE without the marker."""
    import pypto.language as pl

    return getattr(pl.SplitMode, _pypto_variant.split or "NONE")


@pytest.fixture
def pypto_direction(_pypto_variant: Variant) -> Any:
    """Direction of this test, a `pytest_pypto.Direction`; BIDIR without the marker."""
    from pytest_pypto.harness.direction import Direction

    return Direction[_pypto_variant.direction or "BIDIR"]


@pytest.fixture
def pypto_config(request: pytest.FixtureRequest, pypto_platform: str, _pypto_build_dir: Path) -> Any:
    """A `RunConfig` for this test's platform. Override it in a `conftest.py` to change settings for many tests."""
    from pypto.runtime import RunConfig

    return RunConfig(platform=pypto_platform)


@pytest.fixture
def _pypto_build_dir(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where compiles without a directory go: below the cache, until this process ends (jit kernels keep artifacts)."""
    state = state_of(request.config)
    if state.build_dir is None:
        state.build_dir = _cache_dir(request.config) / "build" / str(os.getpid())
    if not os.environ.get("PYPTO_PROG_BUILD_DIR"):
        monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(state.build_dir))
    return state.build_dir


def _cache_dir(config: pytest.Config) -> Path:
    """The store's directory: below pytest's cache, or for the user when there is none that can be written."""
    cache = getattr(config, "cache", None)
    try:
        found = None if cache is None else Path(cache.mkdir("pypto"))
    except OSError:  # a read-only tree; pytest goes on without its cache, too
        found = None
    if found is not None and os.access(found, os.W_OK):
        return found
    import tempfile

    return Path(tempfile.gettempdir()) / f"pytest-pypto-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


@pytest.fixture
def _pypto_workbench(request: pytest.FixtureRequest, _pypto_variant: Variant, pypto_config: Any) -> Any:
    from pytest_pypto.workbench import SessionTools, Workbench

    state = state_of(request.config)
    if state.tools is None:
        state.tools = SessionTools(_cache_dir(request.config))
    return Workbench(request.node, state.settings, _pypto_variant, pypto_config, state.tools)


@pytest.fixture
def pypto_compile(_pypto_workbench: Any) -> Callable[..., Any]:
    """Compile a program through this test's RunConfig: `pypto_compile(program, **RunConfig fields)`."""
    return _pypto_workbench.compile  # type: ignore[no-any-return]


@pytest.fixture
def pypto_inputs(_pypto_workbench: Any) -> Callable[..., Any]:
    """Seeded arguments from the signature: `pypto_inputs(compiled, *, seed=, dims=, name=value)`."""
    return _pypto_workbench.inputs  # type: ignore[no-any-return]


@pytest.fixture
def pypto_golden(_pypto_workbench: Any) -> Callable[..., Any]:
    """Expected values from a plain function: `pypto_golden(function, inputs)`."""
    return _pypto_workbench.golden  # type: ignore[no-any-return]


@pytest.fixture
def pypto_oracle(_pypto_workbench: Any) -> Callable[..., Any]:
    """Run through torch code: `pypto_oracle(compiled, inputs, *, after=pass_name)`."""
    return _pypto_workbench.oracle  # type: ignore[no-any-return]


@pytest.fixture
def pypto_device(_pypto_workbench: Any) -> Callable[..., Any]:
    """Run on the device: `pypto_device(compiled, inputs)`."""
    return _pypto_workbench.device  # type: ignore[no-any-return]


@pytest.fixture
def pypto_check(_pypto_workbench: Any) -> Callable[..., Any]:
    """Check in every way: `pypto_check(compiled, inputs, golden, *, rtol=, atol=, layers=)`."""
    return _pypto_workbench.check  # type: ignore[no-any-return]


@pytest.fixture
def pypto_compile_error() -> Callable[..., Any]:
    """Expect an error of the front end or the compiler: `with pypto_compile_error(cls, line=, keywords=): ...`."""
    from pytest_pypto.expected_error import expect_error

    return expect_error
