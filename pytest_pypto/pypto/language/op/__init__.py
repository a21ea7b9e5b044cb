"""The operator functions of the language."""
