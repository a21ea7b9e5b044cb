"""The runtime's log: levels by name, and mirroring to the compiler's log."""

from __future__ import annotations

import logging
import os

from ..logs import LogLevel, set_log_level

TIMING = 25
logger = logging.getLogger("pypto.runtime")
logging.addLevelName(TIMING, "TIMING")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "timing": TIMING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "null": logging.CRITICAL + 10,
}
_MIRROR = ((logging.DEBUG, LogLevel.DEBUG), (logging.INFO, LogLevel.INFO), (30, LogLevel.WARN), (40, LogLevel.ERROR))


def level_number(level: int | str) -> int:
    """A level as Python counts it.

    Raises:
        ValueError: an unknown name.
    """
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    number = _LEVELS.get(level.strip().lower()) if isinstance(level, str) else None
    if number is None:
        raise ValueError(f"unknown log level {level!r}; use a number or one of {', '.join(_LEVELS)}")
    return number


def configure_log(level: int | str, *, sync_pypto: bool = False) -> None:
    """Set the level of the runtime's log, and of the compiler's log too with `sync_pypto`.

    Raises:
        ValueError: an unknown level.
    """
    number = level_number(level)
    logger.setLevel(number)
    if sync_pypto:
        set_log_level(next((mirror for limit, mirror in _MIRROR if number <= limit), LogLevel.NONE))


def log_level() -> int:
    """The level in force, as Python counts it."""
    return logger.getEffectiveLevel()


def configure_from_environment() -> None:
    """Apply `PYPTO_RUNTIME_LOG` (and `PYPTO_RUNTIME_LOG_SYNC=1`); an unknown level is ignored with a warning."""
    text = os.environ.get("PYPTO_RUNTIME_LOG", "").strip()
    if not text:
        return
    try:
        configure_log(int(text) if text.isdigit() else text, sync_pypto=os.environ.get("PYPTO_RUNTIME_LOG_SYNC") == "1")
    except ValueError as problem:
        logger.warning("PYPTO_RUNTIME_LOG: %s", problem)


configure_from_environment()
