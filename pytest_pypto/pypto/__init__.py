"""The embedded PyPTO: a pure-Python implementation of the public PyPTO API."""
