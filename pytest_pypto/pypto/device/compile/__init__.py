"""From the statements of a kernel to Python closures."""
