"""Text that Python accepts and the language does not: every refusal has its place, its line and its remedy."""

from __future__ import annotations

import ast
import io
import traceback
from pathlib import Path

import pypto.language as pl
import pytest
from pypto.language.parser import diagnostics
from pypto.language.parser.diagnostics import ParserError, UndefinedVariableError

from tests.kit import shown

LIBRARY = "import pypto.language as pl\n"
F = "def f(x: pl.Tensor[[4], pl.FP32]):\n    return x\n"
METHOD = "    @pl.function\n    def f(self, x: pl.Tensor[[4], pl.FP32]):\n        return x\n"
KERNEL = LIBRARY + "@pl.function\n" + F


def body(text: str) -> str:
    return KERNEL.replace("return x", text)


REFUSED = {
    "module as extent": (KERNEL.replace("[4]", "[pl]"), 3, 21, "pl is no extent"),
    "self as extent": (KERNEL.replace("[4]", "[self]"), 3, 21, "self is no extent"),
    "extent that running would define": (f"N = compute()\n{KERNEL.replace('[4]', '[N]')}", 4, 21, "'N'"),
    "valid extent that running would define": (
        "N = compute()\n" + KERNEL.replace("FP32]", "FP32, pl.TensorView(valid_shape=[N])]"),
        *(4, 61, "'N'"),
    ),
    "async function": (f"{LIBRARY}@pl.function\nasync {F}", 3, 1, "'f' is an async function"),
    "async method": (f"{LIBRARY}@pl.program\nclass P:\n{METHOD.replace('def', 'async def')}", 5, 5, "async function"),
    "function as program": (f"{LIBRARY}@pl.program\n{F}", 3, 1, "@pl.program is for classes, 'f' is a function"),
    "class as function": (f"{LIBRARY}@pl.function\nclass P:\n{METHOD}", 3, 1, "'P' is a class, not a function"),
    "option of a program": (
        f"{LIBRARY}@pl.program(foo=1)\nclass P:\n{METHOD}",
        2,
        13,
        "Unknown keyword argument 'foo'",
    ),
    "starred option": (f"{LIBRARY}@pl.program(**a)\nclass P:\n{METHOD}", 2, 13, "argument '**' in @pl.program"),
    "program by position": (f"{LIBRARY}@pl.program(1)\nclass P:\n{METHOD}", 2, 13, "takes keyword arguments only"),
    "strictness": (
        f"{LIBRARY}@pl.program(strict_ssa=1)\nclass P:\n{METHOD}",
        2,
        24,
        "strict_ssa= must be True or False",
    ),
    "starred option of a function": (KERNEL.replace("function", "function(**a)", 1), 2, 14, "'**' in @pl.function"),
    "NUL": (KERNEL + "\0", 5, 1, "NUL character"),
    "surrogate": (KERNEL + "y = '\ud800'", 5, 6, "half of a surrogate pair"),
    "yield": (body("yield x"), 4, 5, "Unsupported expression type: Yield"),
    "yield from": (body("y = yield from x"), 4, 9, "Unsupported expression type: YieldFrom"),
    "await": (body("y = pl.exp(await x)"), 4, 16, "Unsupported expression type: Await"),
    "star": (body("return *x, x"), 4, 12, "Unsupported expression type: Starred"),
    "attribute of the program": (body("y = self.N"), 4, 9, "Standalone attribute access not supported: self.N"),
    "division by zero": (body("n = 1 // 0"), 4, 9, "cannot compute 1 // 0"),
    "function that calls itself": (body("return f(x)"), 4, 12, "Unsupported function call"),
    "missing operand": (body("y = pl.add(x)"), 4, 9, "missing 1 required positional argument: 'rhs'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    code, line, column, words = REFUSED[name]
    with pytest.raises(ParserError) as caught:
        pl.parse(code, "user.py")
    error = caught.value
    assert words in error.message
    assert error.span is not None
    assert (error.span["filename"], error.span["line"], error.span["column"]) == ("user.py", line, column)
    assert error.hint or "must be" in error.message
    printed = shown(error)
    assert f"--> user.py:{line}:{column}" in printed
    assert f"\n{line} | " in printed
    assert "^" in printed
    assert (error.hint or "") in printed


NO_PYTHON = {
    "keyword twice": (body("y = pl.cast(x, target_type=pl.FP16, target_type=pl.BF16)"), 4, "keyword argument repeated"),
    "keyword of a loop twice": (body("for i in pl.range(3, attrs={}, attrs={}):\n        y = x"), 4, "repeated"),
    "keyword of a view twice": (
        KERNEL.replace("FP32]", "FP32, pl.TensorView(valid_shape=[2], valid_shape=[3])]"),
        *(3, "repeated"),
    ),
    "break outside a loop": (body("break"), 4, "'break' outside loop"),
    "return outside a function": (f"return 3\n{KERNEL}", 1, "'return' outside function"),
    "control character": (KERNEL + "\x01", 5, "invalid (non-printable character|syntax)"),
}


@pytest.mark.parametrize("name", NO_PYTHON)
def test_what_python_itself_refuses(name: str) -> None:
    code, line, words = NO_PYTHON[name]
    with pytest.raises(SyntaxError, match=words) as caught:
        pl.parse(code, "user.py")
    assert (caught.value.filename, caught.value.lineno) == ("user.py", line)
    assert caught.value.msg.startswith("Failed to compile code from user.py: ")
    shown = io.StringIO()
    traceback.print_exception(caught.value, file=shown)
    assert f'File "user.py", line {line}' in shown.getvalue()
    assert code.split("\n")[line - 1].strip() in shown.getvalue()


def test_a_byte_order_mark_is_passed_over() -> None:
    assert str(pl.parse("\ufeff" + KERNEL)) == str(pl.parse(KERNEL))


def test_names_follow_python_normal_form() -> None:
    printed = str(pl.parse(body("\ufb01 = pl.exp(x)\n    return fi")))
    assert "fi: pl.Tensor[[4], pl.FP32] = pl.tensor.exp(x)" in printed


def test_statements_too_deep_for_the_stack_are_refused_at_their_place() -> None:
    chain = "if n == 0:\n        y = x\n" + "".join(f"    elif n == {k}:\n        y = x\n" for k in range(300))
    code = body(chain).replace("FP32]):", "FP32], n: pl.Scalar[pl.INDEX]):")
    with pytest.raises(ParserError, match="nested too deeply") as caught:
        pl.parse(code)
    assert caught.value.span is not None
    assert (caught.value.span["line"], caught.value.span["column"]) == (4, 5)


STATES = (
    "take no",
    "takes",
    "must",
    "needs",
    "requires",
    " is a ",
    "accepted",
    "as in ",
    "{message}",
    "{_reason",
    "Write",
    "write",
)


def test_every_refusal_of_the_parser_says_what_is_accepted() -> None:
    """A call of `fail`, `error` or `wrong` has a hint, or a message that states the rule itself."""
    for path in sorted(Path(diagnostics.__file__).parents[1].glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            least = {"fail": 4, "error": 4, "wrong": 3}.get(node.func.attr)
            if least is None or ast.unparse(node.func.value) not in ("ctx", "self"):
                continue
            named = len(node.args) >= least or any(k.arg == "hint" or k.arg is None for k in node.keywords)
            text = ast.unparse(node)
            assert named or any(word in text for word in STATES), f"{path.name}:{node.lineno}: {text}"


def test_an_unknown_extent_of_a_text_stays_a_symbol() -> None:
    assert "N = pl.dynamic" in str(
        pl.parse(f"# pypto.program: P\n{LIBRARY}@pl.program\nclass P:\n{METHOD}".replace("[4]", "[N]"))
    )
    with pytest.raises(UndefinedVariableError):
        pl.parse(body("return N"))
