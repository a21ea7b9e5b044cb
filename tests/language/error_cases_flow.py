"""Errors in statements, loops and scopes: (class, start of the message, body of a function with the place marked)."""

from __future__ import annotations

STATEMENTS = [
    ("UnsupportedFeatureError", "Unsupported statement type: AugAssign", "«k += 1»"),
    ("UnsupportedFeatureError", "Unsupported statement type: Assert", "«assert True»"),
    ("UnsupportedFeatureError", "Unsupported statement type: Try", "«try:\n    z = x\nfinally:\n    pass»"),
    ("UnsupportedFeatureError", "Unsupported statement type: Import", "«import os»"),
    ("UnsupportedFeatureError", "Unsupported statement type: Delete", "«del x»"),
    ("UnsupportedFeatureError", "Unsupported statement type: FunctionDef", "«def f():\n    pass»"),
    ("UnsupportedFeatureError", "Yield assignment with no value is not supported", "«z: pl.Scalar[pl.INDEX]»"),
    ("ParserSyntaxError", "Unsupported assignment: a = b = x", "«a = b = x»"),
    ("ParserSyntaxError", "Unsupported assignment: x.a = x", "«x.a = x»"),
    ("ParserSyntaxError", "Unsupported assignment: ", "a, «*b» = (x, x)"),
    (
        "ParserSyntaxError",
        "Failed to parse function 'main': TupleGetItemExpr requires tuple to have TupleType, got TensorType",
        "«a», b = pl.add(x, x)",
    ),
    (
        "ParserSyntaxError",
        "Failed to parse function 'main': TupleGetItemExpr index 2 out of bounds",
        "a, b, «c» = (x, k)",
    ),
    (
        "ParserTypeError",
        "Cannot reassign 'z' with a different type: was pl.Tensor[[64, 64], pl.FP32], got pl.Tensor[[16, 64], pl.FP32]",
        "z = pl.exp(x)\n«z = pl.slice(x, [16, 64], [0, 0])»",
    ),
    (
        "ParserSyntaxError",
        "pl.func_attr() must appear before every other statement in 'main'",
        "z = x\n«pl.func_attr({'a': 1})»",
    ),
    ("ParserSyntaxError", "pl.func_attr() takes one dictionary literal", "«pl.func_attr(3, 4)»"),
    ("ParserSyntaxError", "duplicate key 'a' in pl.func_attr()", "pl.func_attr({'a': 1, «'a'»: 2})"),
    ("ParserSyntaxError", "keys of pl.func_attr() are string literals", "pl.func_attr({«1»: 2})"),
    ("ParserSyntaxError", "'auto_scope' is a keyword of the decorator", "pl.func_attr({'auto_scope': «False»})"),
    ("ParserTypeError", "'split' takes a pl.SplitMode", "pl.func_attr({'split': «3»})"),
    (
        "ParserSyntaxError",
        "Failed to parse function 'main': Unsupported list element type for key: e.",
        "pl.func_attr({'e': «[1, 2]»})",
    ),
    ("ParserError", "static_assert failed: four is not five", "«pl.static_assert(4 == 5, 'four is not five')»"),
    ("ParserSyntaxError", "static condition is no compile-time constant: k", "pl.static_assert(«k» > 3)"),
    ("ParserSyntaxError", "f-strings of pl.static_print() take no conversions", "pl.static_print(«f'{k!r}'»)"),
    ("InvalidOperationError", "pl.dump_tag() is for Orchestration and Inline functions", "«pl.dump_tag(x)»"),
]
LOOPS = [
    (
        "ParserSyntaxError",
        "For loop must use pl.range(), pl.parallel(), pl.unroll(), pl.pipeline(), pl.while_(), pl.spmd(), "
        "or pl.split_aiv()",
        "for i in «range(3)»:\n    z = x",
    ),
    ("ParserSyntaxError", "For loop must use", "for i in «x»:\n    z = x"),
    (
        "ParserSyntaxError",
        "else: on a for loop is not supported",
        "for i in pl.range(3):\n    z = x\nelse:\n    «pass»",
    ),
    ("ParserSyntaxError", "else: on a while loop is not supported", "while True:\n    z = x\nelse:\n    «pass»"),
    (
        "ParserSyntaxError",
        "Unknown keyword argument 'chunk' in pl.range()",
        "for i in pl.range(3, «chunk=2»):\n    z = x",
    ),
    ("ParserSyntaxError", "pl.range() needs at least a stop value", "for i in «pl.range()»:\n    z = x"),
    ("ParserSyntaxError", "pl.range() with step 0 never ends", "for i in «pl.range(0, 4, 0)»:\n    z = x"),
    (
        "ParserSyntaxError",
        "Failed to parse function 'main': pl.range() takes integer bounds",
        "for i in pl.range(«0.5»):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "Mismatch: 1 iter_args but 2 init_values",
        "for i, «(a,)» in pl.range(3, init_values=(x, x)):\n    b = pl.yield_(a)",
    ),
    (
        "ParserSyntaxError",
        "Mismatch: 0 iter_args but 1 init_values",
        "for «i» in pl.range(3, init_values=(x,)):\n    b = pl.yield_(x)",
    ),
    (
        "ParserSyntaxError",
        "init_values must be a list or tuple",
        "for i, (a,) in pl.range(3, init_values=«x»):\n    b = pl.yield_(a)",
    ),
    ("ParserSyntaxError", "Unsupported loop target: (a, b, c)", "for «a, b, c» in pl.range(3):\n    z = x"),
    (
        "ParserSyntaxError",
        "carried values of a loop are plain names",
        "for i, («x[0]»,) in pl.range(3, init_values=(x,)):\n    b = pl.yield_(x)",
    ),
    (
        "ParserSyntaxError",
        "Loop with init_values requires an assignment-form pl.yield_(...)",
        "«for i, (a,) in pl.range(3, init_values=(x,)):\n    pl.yield_(a)»",
    ),
    (
        "ParserSyntaxError",
        "loop attribute 'a' must be a literal",
        "for i in pl.range(3, attrs=«{'a': [1]}»):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "pl.unroll() requires compile-time constant integer bounds",
        "for i in «pl.unroll(k)»:\n    z = x",
    ),
    ("ParserSyntaxError", "pl.pipeline() requires stage= (positive integer)", "for i in «pl.pipeline(3)»:\n    z = x"),
    (
        "ParserSyntaxError",
        "pl.pipeline() requires stage= (positive integer)",
        "for i in pl.pipeline(3, stage=«0»):\n    z = x",
    ),
    ("InvalidOperationError", "'break' not supported in parallel loops", "for i in pl.parallel(3):\n    «break»"),
    ("InvalidOperationError", "'continue' not supported in unroll loops", "for i in pl.unroll(3):\n    «continue»"),
    (
        "ParserSyntaxError",
        "First statement in pl.while_() body must be pl.cond(condition)",
        "for (a,) in pl.while_(init_values=(x,)):\n    «b = pl.yield_(a)»",
    ),
    (
        "ParserSyntaxError",
        "pl.cond() takes one condition",
        "for (a,) in pl.while_(init_values=(x,)):\n    «pl.cond()»\n    b = pl.yield_(a)",
    ),
    (
        "ParserSyntaxError",
        "pl.cond() must be the first statement",
        "for (a,) in pl.while_(init_values=(x,)):\n    pl.cond(k > 0)\n    «pl.cond(k > 0)»\n    b = pl.yield_(a)",
    ),
    ("ParserSyntaxError", "pl.while_() takes init_values=(...)", "for (a,) in «pl.while_()»:\n    pl.cond(k > 0)"),
    (
        "ParserTypeError",
        "if condition must be a Bool-typed scalar expression, got pl.Scalar[pl.INDEX]",
        "«if k:\n    z = x»",
    ),
    (
        "ParserTypeError",
        "while condition must be a Bool-typed scalar expression, got pl.Scalar[pl.INDEX]",
        "«while k:\n    z = x»",
    ),
]
REGION = "pl.at(level=pl.Level.CORE_GROUP"
SCOPES = [
    ("UnsupportedFeatureError", "Unsupported context manager in with statement", "«with open('a'):\n    z = x»"),
    (
        "ParserSyntaxError",
        "Only single context manager supported in with statement",
        "«with pl.cluster(), pl.cluster():\n    z = x»",
    ),
    ("ParserSyntaxError", "`as` is for pl.at(...) and pl.spmd(...)", "with pl.cluster() as «c»:\n    z = x"),
    ("ParserSyntaxError", "pl.at() requires a level argument", "with «pl.at()»:\n    z = x"),
    (
        "ParserSyntaxError",
        "Expected pl.Level.<name> for level=, got 'CORE_GROUP'",
        "with pl.at(level=«'CORE_GROUP'»):\n    z = x",
    ),
    ("ParserSyntaxError", "Unknown keyword argument 'foo' in pl.at()", f"with {REGION}, «foo=1»):\n    z = x"),
    (
        "ParserSyntaxError",
        "Unsupported entry in pl.at(optimizations=[...])",
        f"with {REGION}, optimizations=[«1»]):\n    z = x",
    ),
    ("ParserSyntaxError", "pl.at(optimizations=...) must be a list", f"with {REGION}, optimizations=«3»):\n    z = x"),
    (
        "ParserSyntaxError",
        "pl.split() appears twice",
        f"with {REGION}, optimizations=[pl.split(pl.SplitMode.NONE), «pl.split(pl.SplitMode.NONE)»]):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "pl.cross_core_slot() appears twice",
        f"with {REGION}, optimizations=[pl.cross_core_slot(slot_num=2), «pl.cross_core_slot(slot_num=2)»]):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "slot_num= must be positive, got 0",
        f"with {REGION}, optimizations=[pl.cross_core_slot(slot_num=«0»)]):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "pl.cross_core_slot() takes slot_num=",
        f"with {REGION}, optimizations=[«pl.cross_core_slot()»]):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "Expected pl.SplitMode.<name> for pl.split()",
        f"with {REGION}, optimizations=[pl.split(«1»)]):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "pl.split() takes one pl.SplitMode",
        f"with {REGION}, optimizations=[«pl.split()»]):\n    z = x",
    ),
    ("ParserSyntaxError", "name_hint= must be an identifier", f"with {REGION}, name_hint=«'a b'»):\n    z = x"),
    ("ParserSyntaxError", "name_hint= must be a string literal", f"with {REGION}, name_hint=«3»):\n    z = x"),
    ("ParserSyntaxError", "windowize= must be True or False", f"with {REGION}, windowize=«1»):\n    z = x"),
    (
        "ParserSyntaxError",
        "role= is not for pl.at(level=pl.Level.CORE_GROUP)",
        "with «pl.at(pl.Level.CORE_GROUP, pl.Role.SubWorker)»:\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "optimizations= is for pl.at(level=pl.Level.CORE_GROUP)",
        "with «pl.at(level=pl.Level.CHIP, optimizations=[])»:\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker) is not supported",
        "with «pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker)»:\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "pl.at(level=pl.Level.CORE_GROUP) inside another",
        f"with {REGION}):\n    with «{REGION})»:\n        z = x",
    ),
    (
        "ParserSyntaxError",
        "scope combines a function-level pl.split(pl.SplitMode.UP_DOWN)",
        f"with «{REGION}, optimizations=[pl.split(pl.SplitMode.UP_DOWN)])»:\n"
        "    for i in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n        z = x",
    ),
    ("ParserSyntaxError", "deps= must be a list of task ids", f"with {REGION}, deps=«k»):\n    z = x"),
    ("ParserTypeError", "deps= takes task ids", f"with {REGION}, deps=[«k»]):\n    z = x"),
    (
        "ParserSyntaxError",
        "no_dep_args= of pl.at() must be a list of names",
        f"with {REGION}, no_dep_args=«x»):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "no_dep_args= of pl.at() must be a list of names, got x[0]",
        f"with {REGION}, no_dep_args=[«x[0]»]):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "pl.spmd() requires the number of blocks",
        "with «pl.spmd()»:\n    i = pl.tile.get_block_idx()",
    ),
    ("ParserSyntaxError", "core_num of pl.spmd() must be positive, got 0", "for i in pl.spmd(«0»):\n    z = x"),
    ("ParserSyntaxError", "pl.spmd() gives one block index", "for «i, j» in pl.spmd(4):\n    z = x"),
    ("ParserSyntaxError", "deps= of pl.spmd() needs the `as tid` form", "for i in pl.spmd(4, deps=«[]»):\n    z = x"),
    ("ParserSyntaxError", "Unknown keyword argument 'foo' in pl.spmd()", "for i in pl.spmd(4, «foo=1»):\n    z = x"),
    (
        "ParserSyntaxError",
        "with pl.spmd(...) dispatches exactly one function, found 0",
        "«with pl.spmd(4):\n    z = pl.exp(x)»",
    ),
    (
        "ParserSyntaxError",
        "pl.split_aiv(n) requires n == 2",
        "for i in pl.split_aiv(«3», mode=pl.SplitMode.NONE):\n    z = x",
    ),
    ("ParserSyntaxError", "pl.split_aiv() requires mode=", "for i in «pl.split_aiv(2)»:\n    z = x"),
    (
        "ParserSyntaxError",
        "Unknown keyword argument 'foo' in pl.split_aiv()",
        "for i in pl.split_aiv(2, «foo=1»):\n    z = x",
    ),
    (
        "ParserSyntaxError",
        "pl.split_aiv() regions cannot be nested",
        "for i in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n"
        "    for j in «pl.split_aiv(2, mode=pl.SplitMode.NONE)»:\n        z = x",
    ),
    ("ParserSyntaxError", "Unknown keyword argument 'a' in pl.cluster()", "with pl.cluster(«a=1»):\n    z = x"),
    ("ParserSyntaxError", "pl.cluster() takes name_hint= only", "with pl.cluster(«'a'»):\n    z = x"),
    (
        "ParserSyntaxError",
        "with pl.scope() is only for functions with auto_scope=False",
        "with «pl.scope()»:\n    z = x",
    ),
    ("ParserSyntaxError", "Unknown keyword argument 'a' in pl.scope()", "with pl.scope(«a=1»):\n    z = x"),
    ("ParserSyntaxError", "Expected pl.ScopeMode.<name> for mode=", "with pl.scope(mode=«3»):\n    z = x"),
    ("ParserSyntaxError", "pl.manual_scope() takes no arguments", "with «pl.manual_scope(1)»:\n    z = x"),
    (
        "ParserSyntaxError",
        "a MANUAL runtime scope cannot be inside a MANUAL one",
        "with pl.manual_scope():\n    with «pl.manual_scope()»:\n        z = x",
    ),
]
