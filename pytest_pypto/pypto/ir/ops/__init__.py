"""Records of the op table, one module per category."""


def register_all() -> None:
    """Enter every operator into the table."""
