"""PyPTO's intermediate representation."""
