"""The compiler's log level and the functions that write to its log."""

from __future__ import annotations

import logging
import os
from enum import IntEnum

logger = logging.getLogger("pypto")


def child_log(name: str) -> logging.Logger:
    """The log of one part of the compiler, `pypto.<name>`."""
    return logger.getChild(name)


class LogLevel(IntEnum):
    """Levels of the compiler log, as the public API counts them."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6


_PYTHON = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARN: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.FATAL: logging.CRITICAL,
    LogLevel.EVENT: logging.CRITICAL + 5,
    LogLevel.NONE: logging.CRITICAL + 10,
}


def set_log_level(level: LogLevel) -> None:
    """Show messages from this level on; NONE silences the log."""
    logger.setLevel(_PYTHON[LogLevel(level)])


def get_log_level() -> LogLevel:
    """The level in force."""
    effective = logger.getEffectiveLevel()
    return next((level for level, number in _PYTHON.items() if number >= effective), LogLevel.NONE)


def _write(level: LogLevel, message: str) -> None:
    logger.log(_PYTHON[level], "%s", message)


def log_debug(message: str) -> None:
    """Write at level DEBUG."""
    _write(LogLevel.DEBUG, message)


def log_info(message: str) -> None:
    """Write at level INFO."""
    _write(LogLevel.INFO, message)


def log_warn(message: str) -> None:
    """Write at level WARN."""
    _write(LogLevel.WARN, message)


def log_error(message: str) -> None:
    """Write at level ERROR."""
    _write(LogLevel.ERROR, message)


def log_fatal(message: str) -> None:
    """Write at level FATAL."""
    _write(LogLevel.FATAL, message)


def log_event(message: str) -> None:
    """Write at level EVENT."""
    _write(LogLevel.EVENT, message)


def configure_from_environment() -> None:
    """Apply `PYPTO_LOG_LEVEL`, the name or the number of a level; an unknown one is ignored with a warning."""
    text = os.environ.get("PYPTO_LOG_LEVEL", "").strip()
    if not text:
        return
    by_name = {level.name: level for level in LogLevel} | {str(level.value): level for level in LogLevel}
    if text.upper() in by_name:
        set_log_level(by_name[text.upper()])
    else:
        names = ", ".join(level.name.lower() for level in LogLevel)
        logger.warning("PYPTO_LOG_LEVEL=%r is no level; use one of %s", text, names)


configure_from_environment()
