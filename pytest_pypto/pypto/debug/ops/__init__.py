"""Operators as Python expressions; `table.OP_MAP` has one handler per operator."""

from __future__ import annotations
