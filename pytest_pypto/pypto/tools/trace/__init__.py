"""Parts of the IR trace: reading dumps, comparing them, and the page."""
