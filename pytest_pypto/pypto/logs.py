"""The compiler's log level and the functions that write to its log."""

from __future__ import annotations

import logging
from enum import IntEnum

logger = logging.getLogger("pypto")


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
