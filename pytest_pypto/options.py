"""One table of settings: command line flag, ini key, help text and header all come from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from pytest_pypto.toolchain import MODES

PLATFORMS = ("a2a3sim", "a5sim", "a2a3", "a5")
"""Every platform id, simulators first."""

KEEP = ("never", "fail", "all")

KNOWN_UPDATE = ("no", "passing", "all")

SANITIZERS = (
    *("uninitialised", "out_of_bounds", "overlap", "race", "deadlock", "leftover", "wrong_lane", "outside_valid"),
    *("input_modified", "never_written", "dead_store", "order"),
)
"""What the simulated device can look for."""

ORDERS = ("program", "late", "random", "exhaustive")
"""Orders in which the simulated device can run what is not ordered."""


def _platforms(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.replace(" ", ",").split(",") if name.strip()]
    wrong = [name for name in names if name not in PLATFORMS]
    if wrong:
        raise ValueError(f"unknown platform {wrong[0]!r}: choose from {', '.join(PLATFORMS)}")
    if not names:
        raise ValueError(f"no platform given: choose from {', '.join(PLATFORMS)}")
    return tuple(dict.fromkeys(names))


def _choice(what: str, known: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in known:
            raise ValueError(f"unknown {what} {text!r}: choose from {', '.join(known)}")
        return text

    return parse


def _seed(text: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is no seed: give an integer >= 0") from None
    if value < 0:
        raise ValueError(f"{text!r} is no seed: give an integer >= 0")
    return value


def _tolerance(text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{text!r} is no tolerance: give a finite number >= 0")
    return value


def sanitizers(names: Sequence[str]) -> frozenset[str]:
    """The sanitizers that a list names: single ones, `all`, or `none`.

    Raises:
        ValueError: an unknown name, `all` or `none` beside others, or nothing at all.
    """
    choice = f"choose from all, none, {', '.join(SANITIZERS)}"
    wrong = next((name for name in names if name not in ("all", "none", *SANITIZERS)), None)
    if wrong is not None:
        raise ValueError(f"unknown sanitizer {wrong!r}: {choice}")
    if not names:
        raise ValueError(f"no sanitizer given: {choice}")
    if len(names) > 1 and {"all", "none"} & set(names):
        raise ValueError(f"{', '.join(names)}: all and none stand alone: {choice}")
    return frozenset(SANITIZERS if names[0] == "all" else () if names[0] == "none" else names)


def _sanitizers(text: str) -> frozenset[str]:
    return sanitizers([name for name in text.replace(",", " ").split() if name])


def _order(text: str) -> dict[str, Any]:
    """`random:7` -> {"order": "random", "seed": 7}; nothing for the program's own order."""
    name, colon, seed = text.partition(":")
    if name not in ORDERS or (colon and name != "random"):
        raise ValueError(f"unknown order {text!r}: choose from {', '.join(ORDERS)}, or random:SEED")
    return {} if name == "program" else {"order": name, **({"seed": _seed(seed)} if colon else {})}


@dataclass(frozen=True)
class Option:
    """One setting.

    Attributes:
        name: ini key; the flag is the same with `--` and dashes.
        default: as text, parsed like user input.
        metavar: for `--help`.
        help: what it does.
        parse: text -> value; raises ValueError with the accepted values.
        show: whether the header line always shows it (otherwise only when it was set).
    """

    name: str
    default: str
    metavar: str
    help: str
    parse: Callable[[str], Any]
    show: bool = False

    @property
    def flag(self) -> str:
        """`--pypto-platform`."""
        return "--" + self.name.replace("_", "-")


OPTIONS: tuple[Option, ...] = (
    Option(
        "pypto_platform",
        "a2a3sim",
        "P[,P...]",
        f"Platforms to run on, a comma list of {', '.join(PLATFORMS)}. Variants for other platforms are deselected.",
        _platforms,
        show=True,
    ),
    Option(
        "pypto_toolchain",
        "auto",
        "|".join(MODES),
        "Which PyPTO to test with: an installed one, the embedded one, or (auto) the embedded one only when none is "
        "installed.",
        _choice("toolchain", MODES),
    ),
    Option(
        "pypto_seed",
        "0",
        "N",
        "Base seed of generated inputs; each test mixes it with its own name.",
        _seed,
        show=True,
    ),
    Option(
        "pypto_rtol",
        "",
        "X",
        "Relative tolerance of every comparison that neither an argument nor a marker decides. "
        "Default: by output dtype and accumulation length.",
        _tolerance,
    ),
    Option("pypto_atol", "", "X", "Absolute tolerance, in the same way.", _tolerance),
    Option(
        "pypto_keep",
        "fail",
        "|".join(KEEP),
        "For which tests to keep artifacts, inputs, golden and reports in pypto_artifacts/.",
        _choice("choice for keeping", KEEP),
    ),
    Option(
        "pypto_sanitize",
        "all",
        "all|none|S[,S...]",
        f"What the simulated device looks for: all, none, or some of {', '.join(SANITIZERS)}. The marker wins.",
        _sanitizers,
    ),
    Option(
        "pypto_order",
        "program",
        "|".join(ORDERS),
        "Order in which the simulated device runs what nothing orders; random:SEED repeats one random order.",
        _order,
    ),
    Option(
        "pypto_known",
        "",
        "FILE",
        "TOML file of known failures ([[known]] tables with id, platform, phase, reason, issue). A listed test must "
        "fail in that phase; one that passes is reported with the line to delete.",
        str.strip,
    ),
    Option(
        "pypto_known_update",
        "no",
        "|".join(KNOWN_UPDATE),
        "Rewrite that file after the run: `passing` deletes or narrows entries whose tests pass now, `all` also adds "
        "what fails (and makes the file). Entries of tests that did not run stay.",
        _choice("way to update known failures", KNOWN_UPDATE),
    ),
)

Origin = Literal["command line", "ini", "default"]


@dataclass(frozen=True)
class Setting:
    """A value and where it came from."""

    value: Any
    origin: Origin
    text: str = ""


@dataclass(frozen=True)
class Settings:
    """All settings of a session."""

    values: Mapping[str, Setting]

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def origin(self, name: str) -> Origin:
        """Where a value came from."""
        return self.values[name].origin

    @property
    def platforms(self) -> tuple[str, ...]:
        """Selected platforms, in order."""
        chosen: tuple[str, ...] = self["pypto_platform"]
        return chosen

    def header(self) -> str:
        """`platform=a2a3sim, seed=3 (ini)`: what a reader must know to repeat the run."""
        parts = []
        for option in OPTIONS:
            setting = self.values[option.name]
            if option.show or setting.origin != "default":
                origin = "" if setting.origin == "default" else f" ({setting.origin})"
                parts.append(f"{option.name.removeprefix('pypto_')}={setting.text}{origin}")
        return ", ".join(parts)

    def flags(self) -> list[str]:
        """The command line flags that were given, for a command that repeats a test."""
        return [
            f"{option.flag}={self.values[option.name].text}"
            for option in OPTIONS
            if self.values[option.name].origin == "command line"
        ]


def add_options(parser: pytest.Parser) -> None:
    """Register every option as a flag and as an ini key."""
    group = parser.getgroup("pypto", "PyPTO kernels")
    for option in OPTIONS:
        default = f" (default: {option.default})" if option.default else ""
        group.addoption(option.flag, dest=option.name, metavar=option.metavar, default=None, help=option.help + default)
        parser.addini(option.name, f"{option.help} Same as {option.flag}.", default=None)


def read_settings(config: pytest.Config) -> Settings:
    """Command line over ini over default, each value checked.

    Raises:
        pytest.UsageError: a value is not accepted; the message names the flag or key, the value and the accepted ones.
    """
    return Settings({option.name: _read(config, option) for option in OPTIONS})


def _read(config: pytest.Config, option: Option) -> Setting:
    given = getattr(config.known_args_namespace, option.name, None)
    ini = config.getini(option.name) if given is None else None
    text, origin = (
        (given, "command line") if given is not None else (str(ini), "ini") if ini else (option.default, "default")
    )
    try:
        value = option.parse(text)
    except ValueError as exc:
        where = option.flag if origin == "command line" else f"ini key {option.name}"
        raise pytest.UsageError(f"{where}: {exc}") from None
    shown = ",".join(value) if isinstance(value, tuple) else text
    return Setting(value, origin, shown)  # type: ignore[arg-type]
