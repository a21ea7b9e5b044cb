"""Reading `.pto` text: tokens, types, statements."""
