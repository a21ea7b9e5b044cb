"""`compiled_meta.json`: reading it back, with one clear error for everything that can be wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..backend import BackendType
from ..codegen.metadata import META_NAME, SCHEMA
from ..ir.dtypes import DataType
from ..ir.enums import ParamDirection
from ..ir.param_info import ParamInfo
from .platforms import parse_platform

_REFRESH = "recompile via ir.compile() to refresh"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What an artifact says about itself; `platform` is None when the file leaves it to the backend."""

    params: tuple[ParamInfo, ...]
    num_return_types: int
    platform: str | None
    backend_type: BackendType


class _Malformed(Exception):
    """What is wrong, without the path."""


def load_sidecar(directory: Path) -> Sidecar:
    """Read the sidecar of an artifact.

    Raises:
        FileNotFoundError: no such directory, or no sidecar in it; the text says what the directory is instead.
        ValueError: another schema, or anything malformed.
    """
    path = directory / META_NAME
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is no directory; pass the output_dir of a compiled program")
    if not path.is_file():
        raise FileNotFoundError(_missing(directory))
    try:
        return _parse(_read(path))
    except _Malformed as problem:
        raise ValueError(f"Invalid {META_NAME} in {directory}: {problem}; {_REFRESH}") from None


def _missing(directory: Path) -> str:
    text = f"{directory} has no {META_NAME}: "
    if (directory / "distributed_meta.json").is_file():
        return text + "it is a distributed build; open it with DistributedCompiledProgram.from_dir"
    subs = sorted(p.parent.name for p in directory.glob(f"next_levels/*/{META_NAME}"))
    if subs:
        return text + f"it is the parent of several orchestrations; open one of next_levels/: {', '.join(subs)}"
    return text + f"it is no artifact, or its build did not finish, or it predates the file; {_REFRESH}"


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise _Malformed(f"not UTF-8 text ({problem.reason} at byte {problem.start})") from None
    except OSError as problem:
        raise _Malformed(f"cannot be read ({problem.strerror})") from None
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as problem:
        raise _Malformed(f"not JSON ({problem})") from None


def _parse(data: Any) -> Sidecar:
    if not isinstance(data, dict):
        raise _Malformed(f"expected an object, got {type(data).__name__}")
    if data.get("schema") != SCHEMA or isinstance(data.get("schema"), bool):
        raise ValueError(
            f"Incompatible {META_NAME} schema {data.get('schema')!r}, this version reads schema {SCHEMA}; {_REFRESH}"
        )
    params = data.get("params")
    if not isinstance(params, list):
        raise _Malformed(f"params must be a list, got {type(params).__name__}")
    returns = data.get("num_return_types", 0)
    if isinstance(returns, bool) or not isinstance(returns, int) or returns < 0:
        raise _Malformed(f"num_return_types must be a number from 0, got {returns!r}")
    parsed = tuple(_param(i, entry) for i, entry in enumerate(params))
    return Sidecar(parsed, returns, _platform(data), _backend(data))


def _param(place: int, entry: Any) -> ParamInfo:
    if not isinstance(entry, dict):
        raise _Malformed(f"params[{place}] must be an object, got {type(entry).__name__}")
    for key in ("name", "direction", "shape", "dtype"):
        if key not in entry:
            raise _Malformed(f"params[{place}] lacks {key!r}")
    name = entry["name"]
    if not isinstance(name, str):
        raise _Malformed(f"params[{place}].name must be text, got {name!r}")
    direction = _member(ParamDirection.__members__, entry["direction"], f"params[{place}].direction")
    dtype = DataType.from_string(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        known = ", ".join(str(d) for d in DataType.members())
        raise _Malformed(f"params[{place}].dtype {entry['dtype']!r} is unknown; known: {known}")
    return ParamInfo(name, direction, _shape(place, entry["shape"]), dtype)


def _shape(place: int, shape: Any) -> tuple[int, ...] | None:
    if shape is None:
        return None
    if not isinstance(shape, list) or any(isinstance(d, bool) or not isinstance(d, int) or d < -1 for d in shape):
        raise _Malformed(f"params[{place}].shape must be null or a list of ints from -1, got {shape!r}")
    return tuple(shape)


def _member(members: Mapping[str, Any], value: Any, where: str) -> Any:
    if not isinstance(value, str) or value not in members:
        raise _Malformed(f"{where} {value!r} is unknown; known: {', '.join(members)}")
    return members[value]


def _platform(data: Mapping[str, Any]) -> str | None:
    platform = data.get("platform")
    if platform is None:
        return None
    if not isinstance(platform, str):
        raise _Malformed(f"platform must be text, got {platform!r}")
    try:
        parse_platform(platform)
    except ValueError as problem:
        raise _Malformed(f"{problem}") from None
    return platform


def _backend(data: Mapping[str, Any]) -> BackendType:
    value = data.get("backend_type", BackendType.Ascend910B.name)
    made: BackendType = _member(BackendType.__members__, value, "backend_type")
    return made
