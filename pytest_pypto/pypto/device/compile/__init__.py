"""From the statements of a kernel to Python source, compiled once per kernel and core.

The source holds the control flow and the scalar arithmetic; every tile operation is a closure made beforehand and
bound to the bytes of one core. With sanitizers the source also holds the state transitions of the shadow.
"""
