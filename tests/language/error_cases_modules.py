"""Errors in calls and at module level: (class, start of the message, source with the place marked)."""

from __future__ import annotations

from .marked import HEAD, function, kernel

TENSOR = "pl.Tensor[[64, 64], pl.FP32]"
METHOD = f"    def f(self, x: {TENSOR}):\n        return x\n"
MARKED = f"    «def f(self, x: {TENSOR}):\n        return x»\n"
CALLS = [
    ("ParserTypeError", "Function 'step' expects 2 argument(s), got 1", "y = «self.step(x)»"),
    ("UndefinedVariableError", "Function 'stpe' not defined in program", "y = «self.stpe(x, x)»"),
    ("UnsupportedFeatureError", "Unsupported function call: step(x, x)", "y = «step(x, x)»"),
    ("ParserSyntaxError", "self.step() takes no deps=", "y = self.step(x, x, deps=«[]»)"),
    (
        "ParserSyntaxError",
        "Function 'step' takes positional arguments only, got keyword 'o'",
        "y = self.step(x, «o=x»)",
    ),
    ("ParserSyntaxError", "attrs= takes a dictionary literal", "y = self.step(x, x, attrs=«3»)"),
    ("ParserSyntaxError", "an attribute value cannot be a dictionary", "y = self.step(x, x, attrs={'a': «{}»})"),
    ("ParserSyntaxError", "pl.submit() takes the function first", "y, t = «pl.submit(x, x)»"),
    ("UndefinedVariableError", "Function 'stpe' not defined in program", "y, t = «pl.submit(self.stpe, x, x)»"),
    ("ParserTypeError", "Function 'step' expects 2 argument(s), got 3", "y, t = «pl.submit(self.step, x, x, x)»"),
    (
        "ParserSyntaxError",
        "Unknown keyword argument 'core_num' in pl.submit()",
        "y, t = pl.submit(self.step, x, x, «core_num=2»)",
    ),
    ("ParserSyntaxError", "pl.spmd_submit() requires core_num=", "y, t = «pl.spmd_submit(self.step, x, x)»"),
    (
        "ParserSyntaxError",
        "allow_early_resolve= must be True or False",
        "y, t = pl.submit(self.step, x, x, allow_early_resolve=«k»)",
    ),
    ("ParserTypeError", "deps= takes task ids, got x", "y, t = pl.submit(self.step, x, x, deps=[«x»])"),
    (
        "ParserSyntaxError",
        "deps= takes a list comprehension over a constant range only",
        "y, t = pl.submit(self.step, x, x, deps=«[x for i in pl.range(k)]»)",
    ),
    ("ParserSyntaxError", "pl.submit() gives 2 value(s)", "«y, z, t» = pl.submit(self.step, x, x)"),
]
MODULES = [
    (
        "ParserSyntaxError",
        "Unknown FunctionType value: Foo",
        f"{HEAD}@pl.function(type=pl.FunctionType.«Foo»)\ndef main(x: {TENSOR}):\n    return x\n",
    ),
    (
        "ParserSyntaxError",
        "Unknown Level value: Foo",
        f"{HEAD}@pl.function(level=pl.Level.«Foo»)\ndef main(x: {TENSOR}):\n    return x\n",
    ),
    (
        "ParserSyntaxError",
        "Expected pl.FunctionType.<name> for type=",
        f"{HEAD}@pl.function(type=«'InCore'»)\ndef main(x: {TENSOR}):\n    return x\n",
    ),
    (
        "ParserSyntaxError",
        "Unknown keyword argument 'kind' in @pl.function",
        f"{HEAD}@pl.function(«kind=1»)\ndef main(x: {TENSOR}):\n    return x\n",
    ),
    (
        "ParserSyntaxError",
        "@pl.function takes keyword arguments only",
        f"{HEAD}@pl.function(«1»)\ndef main(x: {TENSOR}):\n    return x\n",
    ),
    (
        "ParserSyntaxError",
        "auto_scope= must be True or False",
        f"{HEAD}@pl.function(auto_scope=«1»)\ndef main(x: {TENSOR}):\n    return x\n",
    ),
    (
        "ParserSyntaxError",
        "Function 'main' has func_type=InCore which implies level=CHIP_DIE, but explicit level=HOST was provided",
        f"{HEAD}@pl.function(type=pl.FunctionType.InCore, level=pl.Level.HOST)\n"
        f"«def main(x: {TENSOR}):\n    return x»\n",
    ),
    ("ParserSyntaxError", "Class 'P' has no @pl.function methods", f"{HEAD}@pl.program\n«class P:\n    pass»\n"),
    (
        "ParserSyntaxError",
        "two methods called 'f' in 'P'",
        f"{HEAD}@pl.program\nclass P:\n    @pl.function\n{METHOD}    @pl.function\n{MARKED}",
    ),
    (
        "ParserSyntaxError",
        "worker function 'f' must not declare self",
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)\n{MARKED}",
    ),
    ("ParserSyntaxError", "pl.dynamic() takes the name of a symbol", f"{HEAD}D = «pl.dynamic(3)»\n"),
    ("ParserSyntaxError", "pl.dynamic() takes the name of a symbol", f"{HEAD}D = pl.dynamic(«'a b'»)\n"),
    (
        "SSAViolationError",
        "Variable 'z' is already defined",
        function("z = pl.exp(x)\n«z = pl.exp(z)»", decorator="@pl.function(strict_ssa=True)"),
    ),
    (
        "SSAViolationError",
        "'x[0:1] = ...' assigns 'x' again",
        function("«x[0:1]» = x", decorator="@pl.function(strict_ssa=True)"),
    ),
    (
        "UnsupportedFeatureError",
        "Dynamic lower bounds are not supported in tile subscript",
        kernel("t = pl.load(x, [0, 0], [32, 64])\nz = «t[k:k + 4, :]»"),
    ),
    (
        "UnsupportedFeatureError",
        "Element-write 'dst[i, j] = scalar' is not supported for tile targets",
        kernel("t = pl.load(x, [0, 0], [32, 64])\n«t[0, 1]» = 2.0"),
    ),
    (
        "ParserTypeError",
        "Subscript-write source must also be a tensor, got TileType",
        kernel("t = pl.load(x, [0, 0], [32, 64])\nx[0:32, :] = «t»"),
    ),
    (
        "InvalidOperationError",
        "pl operation 'load': target_memory for tile.load must be MemorySpace.Vec or MemorySpace.Mat",
        kernel("t = «pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Left)»"),
    ),
    (
        "ParserTypeError",
        "Inline function 'f' expects 1 argument(s), got 2",
        function("y = «f(x, x)»", head="@pl.inline\ndef f(a):\n    return a\n"),
    ),
    (
        "ParserSyntaxError",
        "inline function 'f' takes positional arguments only",
        function("y = «f(a=x)»", head="@pl.inline\ndef f(a):\n    return a\n"),
    ),
    (
        "ParserSyntaxError",
        "inline function 'f' must return a value",
        function("y = «f(x)»", head="@pl.inline\ndef f(a):\n    b = a\n"),
    ),
]
