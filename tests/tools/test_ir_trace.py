"""The IR trace: reading dumps, comparing them by function, the page, and the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pytest_pypto.pypto.tools import ir_trace
from pytest_pypto.pypto.tools.trace.diffing import HEAD, as_data, functions_of, opcodes
from pytest_pypto.pypto.tools.trace.page import render
from pytest_pypto.pypto.tools.trace.reading import Stage, Trace, TraceError, read_trace
from tests.kit import KIT, dump_files, needs_kit

PROGRAM = """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
    ) -> None:
        x: pl.Scalar = 1
        y: pl.Scalar = 2

    @pl.function
    def main(self) -> None:
        self.kernel()
"""
HOSTILE = "</script><script>document.title='owned'</script><!-- <img src=x onerror=\"document.title='owned'\"> & \u202e"


def folder(path: Path, *texts: str) -> Path:
    """A directory of dumps: the front end and then passes A, B, ..."""
    path.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        name = f"{number:02d}_after_{chr(64 + number)}.py" if number else "00_frontend.py"
        (path / name).write_text(text, encoding="utf-8")
    return path


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.data = self.title = ""
        self.scripts = 0
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "br", "input"}:
            self.open.append(tag)
        self.links += [v for k, v in attrs if k in {"src", "href"} and v]
        self.scripts += tag == "script"
        self._in = "data" if dict(attrs).get("id") == "data" else tag

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "data":
            self.data += data
        elif self._in == "title":
            self.title += data


def data_of(page: str) -> Any:
    return json.loads(_Page(page).data)


def text_of(data: Any, stage: int) -> str:
    return "\n".join(data["lines"][n] for _, text in data["stages"][stage]["functions"] for n in data["texts"][text])


def changes(*texts: str) -> list[list[tuple[str, str]]]:
    """For each stage after the first, the functions that changed and how."""
    data = as_data([Stage(str(n), str(n), text) for n, text in enumerate(texts)])
    kinds = [
        [(c[0], "new" if c[1] < 0 else "gone" if c[2] < 0 else "changed") for c in s["changes"]] for s in data["stages"]
    ]
    return kinds[1:]


# -- functions and differences ----------------------------------------------------------------------------------------


def test_functions_of_a_program() -> None:
    parts = functions_of(PROGRAM)
    assert list(parts) == [HEAD, "kernel", "main"]
    assert parts["kernel"][0] == "    @pl.function(type=pl.FunctionType.InCore)"
    assert parts["main"] == ("    @pl.function", "    def main(self) -> None:", "        self.kernel()", "")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", [HEAD]),
        ("no python at all", [HEAD]),
        ("def f():\n    def inner():\n        pass\n", ["f"]),
        ("@pl.function\ndef f():\n    pass\n\n@pl.function\ndef g():\n    pass\n", ["f", "g"]),
        ("class P:\n    def f(): ...\n    def f(): ...\n", [HEAD, "f", "f (2)"]),
        ("class P:\n    def f(): ...\n    @pl.function(\n        a=1,\n    )\n    def g(): ...\n", [HEAD, "f", "g"]),
    ],
)
def test_functions_of_other_texts(text: str, names: list[str]) -> None:
    parts = functions_of(text)
    assert list(parts) == names
    assert "\n".join("\n".join(part) for part in parts.values()) == text


@needs_kit
def test_functions_keep_every_text_of_the_kit() -> None:
    for file in dump_files("attn") + dump_files("spmd"):
        text = file.read_text(encoding="utf-8")
        assert "\n".join("\n".join(part) for part in functions_of(text).values()) == text


def test_what_changed() -> None:
    other = PROGRAM.replace("= 2", "= 3")
    renamed = other.replace("kernel", "kernel_aiv")
    assert changes(PROGRAM, PROGRAM, other, renamed) == [
        [],
        [("kernel", "changed")],
        [("kernel_aiv", "new"), ("main", "changed"), ("kernel", "gone")],
    ]


def applied(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The new lines, put together from the steps."""
    out: list[str] = []
    at = (0, 0)
    for tag, a, b, c, d in opcodes(old, new):
        assert at == (a, c), "the steps are contiguous"
        out += old[a:b] if tag == "equal" else new[c:d]
        assert tag != "equal" or list(old[a:b]) == list(new[c:d])
        at = (b, d)
    assert at == (len(old), len(new))
    return out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("", "ab"),
        ("ab", ""),
        ("abc", "abc"),
        ("abc", "axc"),
        ("aaab", "aab"),
        ("abcabc", "bcab"),
        ("ab", "ba"),
    ],
)
def test_steps_lead_from_old_to_new(old: str, new: str) -> None:
    assert applied(list(old), list(new)) == list(new)


def test_lines_that_define_the_same_name_are_beside_each_other() -> None:
    old = ["x: A = f(a)", "y: A = g(x)"]
    new = ["m: Ptr = alloc()", "    x: A[m] = f(a)", "    y: A[m] = g(x)"]
    assert opcodes(old, new) == [("insert", 0, 0, 0, 1), ("replace", 0, 2, 1, 3)]


# -- reading ----------------------------------------------------------------------------------------------------------


def test_directory_with_logs_and_hints(tmp_path: Path) -> None:
    dumps = folder(tmp_path / "passes_dump", PROGRAM, PROGRAM)
    (dumps / "01_after_A.log").write_text("[warning] look\n")
    (dumps / "02_after_B.log").write_text("left alone\n")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "perf_hints.log").write_text("[perf_hint PH001] slow\n")
    for given in (tmp_path, dumps):
        trace = read_trace([given])
        assert [(s.name, s.title, s.log) for s in trace.stages] == [
            ("00_frontend", "frontend", ""),
            ("01_after_A", "A", "[warning] look\n"),
        ]
        assert dict(trace.notes) == {"02_after_B.log": "left alone\n", "perf_hints.log": "[perf_hint PH001] slow\n"}


def test_files_are_taken_in_the_order_given(tmp_path: Path) -> None:
    dumps = folder(tmp_path / "d", "a", "b", "c")
    (tmp_path / "edited.py").write_text("z")
    trace = read_trace([dumps / "02_after_B.py", dumps / "00_frontend.py", tmp_path / "edited.py"])
    assert [(s.title, s.text) for s in trace.stages] == [("B", "c"), ("frontend", "a"), ("edited", "z")]


def _remove(name: str) -> Any:
    return lambda d: (d / name).unlink()


BROKEN = [
    (_remove("00_frontend.py"), "has no 00_frontend.py; compile with dump_passes=True"),
    (_remove("01_after_A.py"), "missing snapshot index 01"),
    (lambda d: (d / "02_after_C.py").write_text(""), "duplicate snapshot index 02: 02_after_B.py and 02_after_C.py"),
    (lambda d: (d / "00_after_C.py").write_text(""), "duplicate snapshot index 00: 00_frontend.py and 00_after_C.py"),
    (lambda d: (d / "3_after_C.py").write_text(""), "malformed name '3_after_C.py'"),
    (
        lambda d: (d / "01_after_A.py").write_bytes(b"x = '\xff'"),
        "01_after_A.py is not UTF-8: invalid start byte at byte 5",
    ),
    (lambda d: [_remove(n)(d) for n in ("01_after_A.py", "02_after_B.py")], "no pass snapshot"),
]


@pytest.mark.parametrize(("damage", "message"), BROKEN, ids=[message[:20] for _, message in BROKEN])
def test_incomplete_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Any, message: str) -> None:
    dumps = folder(tmp_path / "d", "a", "b", "c")
    damage(dumps)
    assert ir_trace.main([str(dumps), "-o", str(tmp_path / "t.html")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("pypto-ir-trace: error: ")
    assert message in error
    assert not (tmp_path / "t.html").exists()


def test_paths_that_do_not_fit(tmp_path: Path) -> None:
    dumps = folder(tmp_path / "d", "a", "b")
    for paths, message in [
        ([tmp_path / "nothing"], "does not exist"),
        ([dumps / "00_frontend.py"], "is one dump"),
        ([dumps, dumps / "00_frontend.py"], "is a directory: give one directory alone"),
        ([dumps / "00_frontend.py", dumps / "9.py"], "9.py does not exist"),
    ]:
        with pytest.raises(TraceError, match=message):
            read_trace(paths)


# -- the page ---------------------------------------------------------------------------------------------------------


def test_page_holds_every_text_and_nothing_from_outside(tmp_path: Path) -> None:
    texts = [PROGRAM, PROGRAM.replace("1", "7"), PROGRAM]
    page = render(read_trace([folder(tmp_path / "d", *texts)]), "d", 5)
    parsed, data = _Page(page), data_of(page)
    assert not parsed.open
    assert not parsed.links
    assert "http" not in page
    assert [text_of(data, n) for n in range(3)] == texts
    assert data["context"] == 5
    assert len(data["texts"]) == 4, "equal functions are stored once"


def test_hostile_texts_stay_texts() -> None:
    stages = (Stage("00_x", "x", HOSTILE), Stage(HOSTILE, HOSTILE, f"def f{HOSTILE}", HOSTILE))
    page = render(Trace(stages, ((HOSTILE, HOSTILE),)), HOSTILE, 3)
    parsed = _Page(page)
    assert parsed.scripts == 2
    assert not parsed.links
    assert parsed.title == f"IR trace: {HOSTILE}"
    data = json.loads(parsed.data)
    assert text_of(data, 0) == HOSTILE
    assert data["stages"][1]["log"] == HOSTILE


def test_same_bytes_in_every_process(tmp_path: Path) -> None:
    dumps = folder(tmp_path / "d", PROGRAM, PROGRAM.replace("kernel", "k"), PROGRAM)
    pages = set()
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.html"
        command = [sys.executable, "-m", "pytest_pypto.pypto.tools.ir_trace", str(dumps), "-o", str(out)]
        done = subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        assert done.stdout == f"wrote {out}\n"
        pages.add(out.read_bytes())
    assert len(pages) == 1


@needs_kit
def test_dumps_of_the_reference_compiler() -> None:
    files = sorted((KIT / "attn" / "a2a3sim" / "passes").glob("*.py"))
    data = data_of(render(read_trace(files), "kit", 3))
    for number, file in enumerate(files):
        assert text_of(data, number) == file.read_text(encoding="utf-8")
        assert number == 0 or data["stages"][number]["changes"], "the kit keeps files that differ"


# -- the command line -------------------------------------------------------------------------------------------------


def test_default_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert ir_trace.main([str(folder(tmp_path / "d", "a", "b")), "--context", "0"]) == 0
    assert capsys.readouterr().out == "wrote ir_trace.html\n"
    assert data_of((tmp_path / "ir_trace.html").read_text())["context"] == 0


def test_output_without_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "no" / "t.html"
    assert ir_trace.main([str(folder(tmp_path / "d", "a", "b")), "-o", str(out)]) == 1
    assert f"cannot write {out}: the directory {out.parent} does not exist" in capsys.readouterr().err


def test_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "t.html"
    out.write_text("before")

    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    assert ir_trace.main([str(folder(tmp_path / "d", "a", "b")), "-o", str(out)]) == 1
    assert out.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d", "t.html"]


@pytest.mark.parametrize("args", [[], ["d", "--context", "-1"], ["d", "--context", "few"], ["d", "--what"]])
def test_usage(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        ir_trace.main(args)
    assert exit_.value.code == 2
    assert "usage: pypto-ir-trace" in capsys.readouterr().err


# -- the page in a browser --------------------------------------------------------------------------------------------

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def in_browser(tmp_path: Path, page: str, script: str) -> list[Any]:
    """What a script finds on the page; it fills the list `seen`."""
    marker = "document.body.textContent='SEEN'+JSON.stringify(seen)+'SEEN'"
    file = tmp_path / "page.html"
    file.write_text(
        page.replace("</body>", f"<script>{{const seen=[];{script};{marker}}}</script></body>"), encoding="utf-8"
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run([str(BROWSER), *flags, file.as_uri()], capture_output=True, text=True, timeout=90, check=True)
    found: list[Any] = json.loads(unescape(done.stdout.split("SEEN")[-2]))
    return found


@pytest.mark.skipif(BROWSER is None, reason="needs a browser (chromium) to run the page")
def test_page_in_a_browser(tmp_path: Path) -> None:
    second = PROGRAM.replace("= 2", "= 3").replace("class P:", f"class P:  # {HOSTILE}".replace("'", "`"))
    stages = [PROGRAM, PROGRAM, PROGRAM, second, second.replace("self.kernel()", "pass"), second]
    trace = read_trace([folder(tmp_path / "d", *stages)])
    script = """
    const names=()=>[...document.querySelectorAll('#passes li .name,#passes .fold')].map(x=>x.textContent);
    const here=()=>document.querySelector('h2').textContent;
    const both=x=>x.children[0].textContent+':'+x.children[1].textContent;
    const cards=()=>[...document.querySelectorAll('summary')].map(both);
    seen.push(names(),here(),cards());
    next(1);next(1);next(1);seen.push(here());
    next(-1);seen.push(here());
    step(1);step(1);seen.push(here());
    go(3);$('fn').value='kernel';$('fn').onchange({target:$('fn')});seen.push(names());
    $('fn').value='';$('fn').onchange({target:$('fn')});go(3);
    seen.push([...document.querySelectorAll('td.del,td.add')].map(x=>x.textContent.trim()));
    seen.push([...document.querySelectorAll('.mark')].map(x=>x.textContent));
    $('search').value='PASS';$('search').oninput({target:$('search')});next(1);
    seen.push(here(),document.querySelector('.now .hit').textContent);
    seen.push(document.title)"""
    found = in_browser(tmp_path, render(trace, "d", 3), script)
    shown = HOSTILE.replace("'", "`").replace("\u202e", "\\u202e")
    assert found[0] == ["00_frontend", "2 unchanged", "03_after_C", "04_after_D", "05_after_E"]
    assert found[1] == "03_after_C"
    assert found[2] == ["(module):changed", "kernel:changed", "main:unchanged"]
    assert found[3:6] == ["04_after_D", "03_after_C", "05_after_E"]
    assert found[6] == ["00_frontend", "2 unchanged", "03_after_C", "2 unchanged"]
    assert found[7] == ["class P:", f"class P:  # {shown}", "y: pl.Scalar = 2", "y: pl.Scalar = 3"]
    assert found[8] == ["2", "3"] or found[8][-2:] == ["2", "3"]
    assert found[9:11] == ["04_after_D", "pass"]
    assert found[11] == "IR trace: d"
