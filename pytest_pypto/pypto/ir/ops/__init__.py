"""Records of the op table, one module per category."""

from __future__ import annotations


def register_all() -> None:
    """Enter every operator into the table."""
    from . import distributed, elementwise, gather, matmul, memory, reduce, select, shape, system

    for module in (elementwise, select, reduce, matmul, memory, shape, gather, system, distributed):
        module.register_all()
