"""Command line tools, each run as `python -m pypto.tools.<name>`."""
