"""From a case to a verdict, without pytest: inputs, golden, the five layers, and what follows a failure.

Only the public `pypto` API is used, so the same code drives an installed PyPTO and the embedded one.
"""
