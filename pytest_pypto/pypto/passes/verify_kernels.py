"""Checks of what kernels and host functions promise after the passes that make them."""

from __future__ import annotations

from .verify_flow import Rule

KERNEL_RULES: dict[str, Rule] = {}
