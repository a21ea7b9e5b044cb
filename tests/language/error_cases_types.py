"""Errors in annotations, expressions and subscripts: (class, start of the message, source with the place marked)."""

from __future__ import annotations

from .marked import function, kernel

TENSOR = "pl.Tensor[[64, 64], pl.FP32]"
LOAD = "pl.load(x, [0, 0], [4, 4])"


def tile(extra: str) -> str:
    """A kernel with one tile variable whose annotation ends in `extra`."""
    return kernel(f"t: pl.Tile[[4, 4], pl.FP32, {extra}] = {LOAD}")


ANNOTATIONS = [
    ("ParserTypeError", "Parameter 'y' missing type annotation", function("return x", "«y»")),
    ("ParserTypeError", "Unsupported type annotation: int", function("return x", "x: «int»")),
    ("ParserTypeError", "Incomplete type annotation: pl.Tensor", function("return x", "x: «pl.Tensor»")),
    ("ParserTypeError", "Incomplete type annotation: pl.Scalar", function("return x", "x: «pl.Scalar»")),
    ("ParserTypeError", "Incomplete type annotation: pl.Tensor[[4]]", function("return x", "x: pl.Tensor[«[4]»]")),
    ("ParserTypeError", "Expected a dtype such as pl.FP32", function("return x", "x: pl.Tensor[[4], «4»]")),
    (
        "ParserSyntaxError",
        "AttributeError: module 'pypto.language' has no attribute 'FP99'",
        function("return x", "x: pl.Tensor[[4], «pl.FP99»]"),
    ),
    (
        "ParserTypeError",
        "pl.Tensor[..., pl.DN] is not supported",
        function("return x", "x: pl.Tensor[[4, 4], pl.FP32, «pl.DN»]"),
    ),
    ("ParserTypeError", "Expected a layout", function("return x", "x: pl.Tensor[[4, 4], pl.FP32, «3»]")),
    (
        "ParserTypeError",
        "Scalar parameters cannot have InOut direction",
        function("return x", "x: pl.InOut[«pl.Scalar[pl.FP32]»]"),
    ),
    ("ParserTypeError", "pl.Out[...] is for parameters only", function(f"y: «pl.Out[{TENSOR}]» = x\nreturn y")),
    (
        "ParserTypeError",
        "pl.Tuple cannot be nested",
        function("t: pl.Tuple[«pl.Tuple[pl.Scalar[pl.INT32]]»] = x\nreturn x"),
    ),
    ("ParserTypeError", "pl.Array takes an extent and a dtype", function("a: pl.Array[«4»] = x\nreturn x")),
    ("ParserTypeError", "an extent cannot be -4", function("return x", "x: pl.Tensor[[«-4»], pl.FP32]")),
    (
        "ParserTypeError",
        "Unsupported shape dimension: 1.5 is float",
        function("return x", "x: pl.Tensor[[«1.5»], pl.FP32]"),
    ),
    ("ParserTypeError", "Unsupported shape: 'ab'", function("return x", "x: pl.Tensor[«'ab'», pl.FP32]")),
    (
        "ParserTypeError",
        "Expected an integer expression",
        function("return x", "x: pl.Tensor[[4], pl.FP32, pl.TensorView(stride=[«0.5 * 2.0»])]"),
    ),
    ("ParserTypeError", "Tile annotation with a memref", tile("«pl.MemRef('a')»")),
    ("ParserTypeError", "a tile has no tensor layout", tile("«pl.NZ»")),
    ("ParserTypeError", "pl.Mem.ScalarLocal holds scalars", tile("«pl.Mem.ScalarLocal»")),
    ("ParserTypeError", "Expected a memory space", tile("«'Vec'»")),
    ("ParserTypeError", "pl.Tile takes at most one", tile("pl.Mem.Vec, «pl.Mem.Vec»")),
    (
        "ParserTypeError",
        "Unknown keyword argument 'layuot' in pl.TileView()",
        tile("pl.Mem.Vec, pl.TileView(«layuot=1»)"),
    ),
    ("ParserTypeError", "pl.TileView(...) in an annotation takes keyword", tile("pl.Mem.Vec, pl.TileView(«[4, 4]»)")),
    ("ParserTypeError", "Expected a pl.PadValue", tile("pl.Mem.Vec, pl.TileView(pad=«3»)")),
    (
        "ParserTypeError",
        "Expected pl.TensorView(...)",
        function("return x", "x: pl.Tensor[[4], pl.FP32, «pl.TileView()»]"),
    ),
    (
        "ParserTypeError",
        "pl.Tensor[...] takes the view before the memref",
        function("return x", "x: pl.Tensor[[4], pl.FP32, pl.MemRef('a', 0, 16), «pl.TensorView(stride=[1])»]"),
    ),
    (
        "ParserTypeError",
        "Type annotation for 'z' has shape dimension 0 = 32 but expression has shape dimension 0 = 64",
        function("«z»: pl.Tensor[[32, 64], pl.FP32] = pl.add(x, x)"),
    ),
    (
        "ParserTypeError",
        "Type annotation for 'z' is Tile but expression has type Tensor",
        function("«z»: pl.Tile[[64, 64], pl.FP32] = pl.add(x, x)"),
    ),
    ("ParserTypeError", "Type annotation for 'z' has rank 1", function("«z»: pl.Tensor[[64], pl.FP32] = pl.add(x, x)")),
    (
        "ParserTypeError",
        "Type annotation for 'a' has dtype fp16 but expression has dtype fp32",
        function("«a»: pl.Scalar[pl.FP16] = 0.5"),
    ),
    (
        "ParserTypeError",
        "parameter 'D' is the extent of an earlier parameter",
        function("return x", "x: pl.Tensor[[D], pl.FP32], «D: pl.Scalar[pl.INDEX]»", head="D = pl.dynamic('D')\n"),
    ),
]
MEMREFS = [
    ("ParserTypeError", "a declared pl.MemRef in an annotation needs a name", "«pl.MemRef()»"),
    ("ParserTypeError", "a declared pl.MemRef in an annotation needs a name", "pl.MemRef(«''»)"),
    ("ParserTypeError", "slots= of pl.MemRef is a positive integer", "pl.MemRef('r', slots=«0»)"),
    ("ParserTypeError", "Unknown keyword argument 'slot' in pl.MemRef()", "pl.MemRef('r', «slot=2»)"),
    ("ParserTypeError", "'r' has one slot and cannot be indexed", "«pl.MemRef('r')[0]»"),
    (
        "ParserTypeError",
        "Slot index 2 is out of range for 'r', declared with 2 slot(s)",
        "pl.MemRef('r', slots=2)[«2»]",
    ),
    ("ParserTypeError", "the size of a pl.MemRef is a non-negative integer", "pl.MemRef('r', 0, «k»)"),
    ("ParserTypeError", "the base of a pl.MemRef is a name or a string", "pl.MemRef(«k + 1», 0, 64)"),
    ("ParserTypeError", "Unsupported pl.MemRef arguments", "«pl.MemRef(1, 2, 3, 4, 5)»"),
]
EXPRESSIONS = [
    ("UndefinedVariableError", "Undefined variable 'yy'", "z = pl.add(x, «yy»)"),
    ("UnsupportedFeatureError", "Unsupported binary operator: Pow", "z = «2 ** k»"),
    ("UnsupportedFeatureError", "Unsupported binary operator: BitAnd", "z = «k & 3»"),
    ("UnsupportedFeatureError", "Unsupported unary operator: UAdd", "z = «+k»"),
    ("UnsupportedFeatureError", "Unsupported comparison: Is", "z = «k is None»"),
    ("ParserSyntaxError", "Only simple comparisons supported", "z = «0 < k < 4»"),
    ("UnsupportedFeatureError", "Unsupported expression type: JoinedStr", "z = «f'{k}'»"),
    ("UnsupportedFeatureError", "Unsupported expression type: IfExp", "z = «1 if k == 0 else 2»"),
    ("UnsupportedFeatureError", "Unsupported expression type: Lambda", "z = «lambda a: a»"),
    ("UnsupportedFeatureError", "Unsupported expression type: NamedExpr", "z = pl.add(x, («y := x»))"),
    ("UnsupportedFeatureError", "Unsupported expression type: Dict", "z = «{1: 2}»"),
    ("UnsupportedFeatureError", "Unsupported expression type: ListComp", "z = «[i for i in k]»"),
    ("ParserTypeError", "Unsupported constant type: <class 'str'>", "z = «'a'»"),
    ("UnsupportedFeatureError", "Standalone attribute access not supported: x.foo", "z = «x.foo»"),
    ("UnsupportedFeatureError", "Unsupported operation call: x.exp()", "z = «x.exp()»"),
    ("UnsupportedFeatureError", "Unsupported function call: foo(x)", "z = «foo(x)»"),
    ("UnsupportedFeatureError", "Unsupported function call: print(x)", "«print(x)»"),
    ("UnsupportedFeatureError", "Unsupported function call: x(k)", "z = «x(k)»"),
    ("InvalidOperationError", "Unknown operation 'pl.frobnicate'", "z = «pl.frobnicate(x)»"),
    ("InvalidOperationError", "Unknown pl.tensor operation: frobnicate", "z = «pl.tensor.frobnicate(x)»"),
    ("InvalidOperationError", "Unknown operation 'pl.foo'", "z = «pl.foo.bar(x)»"),
    (
        "InvalidOperationError",
        "pl operation 'add': add() missing 1 required positional argument: 'rhs'",
        "z = «pl.add(x)»",
    ),
    (
        "InvalidOperationError",
        "pl.sub: expected Tensor or Tile operands, got (ConstFloat, Tensor)",
        "z = «pl.sub(1.0, x)»",
    ),
    (
        "ParserSyntaxError",
        "Failed to parse function 'main': Operator 'add' requires same numeric dtype category, got index and fp32",
        "z = «k + 1.0»",
    ),
    (
        "ParserSyntaxError",
        "Failed to parse function 'main': Operator 'add' does not accept bool dtype",
        "b = k == 0\nz = «b + 1»",
    ),
    (
        "ParserSyntaxError",
        "Failed to parse function 'main': Expression must be ScalarExpr or Var with ScalarType",
        "z = «x + x»",
    ),
    ("ParserTypeError", "integer constant does not fit in 64 bits", "z = «99999999999999999999»"),
    ("ParserTypeError", "integer constant does not fit in 64 bits", "z = pl.const(«99999999999999999999», pl.INT32)"),
    ("ParserTypeError", "cannot compute 1 // 0", "z = «1 // 0»"),
    ("ParserSyntaxError", "pl.const() takes a number and a dtype", "z = «pl.const(3)»"),
    ("ParserTypeError", "pl.const() takes a number", "z = pl.const(«k», pl.INT32)"),
    ("ParserSyntaxError", "pl.yield_() stands alone", "z = pl.exp(«pl.yield_(x)»)"),
    ("ParserSyntaxError", "pl.range() is for loops", "z = «pl.range(3)»"),
    ("ParserSyntaxError", "pl.at() opens a scope", "z = «pl.at(level=pl.Level.CORE_GROUP)»"),
    ("InvalidOperationError", "pl.no_dep() is for an argument of a function call", "z = «pl.no_dep(x)»"),
    ("UndefinedVariableError", "Function 'foo' not defined in program", "z = «self.foo(x)»"),
]
SUBSCRIPTS = [
    ("UnsupportedFeatureError", "Slice step is not supported in tensor subscript", "z = «x[0:8:2]»"),
    ("ParserTypeError", "Tensor subscript has 3 indices but the tensor is 2D", "z = «x[0, 0, 0]»"),
    ("ParserTypeError", "an index is an integer scalar", "z = x[«0.5», 0]"),
    (
        "ParserSyntaxError",
        "Failed to parse function 'main': TupleGetItemExpr index 5 out of bounds for tuple with 2 elements",
        "t = (x, k)\nz = «t[5]»",
    ),
    ("ParserSyntaxError", "a tuple is indexed by a constant integer", "t = (x, k)\nz = t[«k»]"),
    ("ParserTypeError", "a value of type pl.Scalar[pl.INDEX] cannot be indexed", "z = «k[0]»"),
    (
        "UnsupportedFeatureError",
        "Element-write 'dst[i, j] = scalar' is not supported for tensor targets",
        "«x[0, 1]» = 2.0",
    ),
    ("ParserTypeError", "Subscript-write source must also be a tensor, got ScalarType", "x[0:1] = «k»"),
    ("ParserTypeError", "Subscript-write source has extent 64 where the window of dimension 0 has 16", "x[0:16] = «x»"),
    (
        "ParserTypeError",
        "Subscript-write source has 2 dimension(s), the window has 3",
        "y = pl.reshape(x, [4, 16, 64])\ny[0:4] = «x»",
    ),
    ("ParserTypeError", "a value of type pl.Scalar[pl.INDEX] cannot be written by subscript", "«k[0]» = 1"),
    ("ParserSyntaxError", "Unsupported assignment: (x, k)[0] = x", "«(x, k)[0]» = x"),
]
