"""Plugins that only the root may ask for: `pytester` runs pytest inside the tests of the plugin."""

pytest_plugins = ["pytester"]
