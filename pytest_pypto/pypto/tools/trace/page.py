"""The page of the IR trace: the data, and a program that draws it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .diffing import as_data
from .reading import Trace
from .script import SCRIPT

_STYLE = """
*{box-sizing:border-box}body{font:14px/1.45 system-ui,sans-serif;margin:0;color:#222;background:#fff;height:100vh;
display:grid;grid-template:auto 1fr/19em 1fr}
header{grid-column:1/3;display:flex;flex-wrap:wrap;gap:.4em 1em;align-items:center;padding:.5em .8em;background:#f6f6f6;
border-bottom:1px solid #ccc}header h1{font-size:1.05em;margin:0}header label{white-space:nowrap}
input,select,button{font:inherit}kbd{font:11px ui-monospace,monospace;border:1px solid #bbb;border-radius:3px;
padding:0 3px;background:#fff}.note{color:#666;margin:.2em 0}
nav{overflow:auto;border-right:1px solid #ccc}nav ul{list-style:none;margin:0;padding:.3em 0}
nav li{padding:.15em .7em;cursor:pointer;display:flex;gap:.4em;font-size:13px;align-items:baseline}
nav li:hover{background:#f0f4fa}nav .here{background:#dbe8fb}nav .fold{color:#888;font-style:italic;padding-left:2em}
.name{flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.plus{color:#1a7f37}.minus{color:#b3261e}
main{overflow:auto;padding:.6em 1em;min-width:0}
h2{font-size:1.15em;margin:.2em 0}h3{font-size:1em;margin:.8em 0 .2em}
.card{border:1px solid #ccc;border-radius:6px;margin:.7em 0;background:#fff}
summary{padding:.35em .7em;background:#f6f6f6;border-radius:6px;cursor:pointer}
summary button{float:right;font-size:12px}
.tag{font-size:11px;border-radius:8px;padding:0 .5em;background:#e4e4e4;margin-left:.6em}.new{background:#d2f4d9}
.removed{background:#ffd9d6}.changed{background:#fff0c2}.warn{background:#ffe2b8}.hits{background:#ffe95c}
.log{background:#fff8ec;border:1px solid #f0d9ae;border-radius:4px;padding:.5em;overflow:auto;
font:12px/1.4 ui-monospace,monospace;white-space:pre-wrap}
.scroll{overflow-x:auto}.diff{border-collapse:collapse;font:12px/17px ui-monospace,monospace;width:100%}
.diff td{padding:0 .5em;vertical-align:top;white-space:pre}
.diff .n{color:#999;text-align:right;user-select:none;width:1%}
.diff td.n{white-space:nowrap;overflow-wrap:normal;min-width:3.5em}
.two{table-layout:fixed}.two .n{width:4em}.two .c{overflow-x:auto;scrollbar-width:thin}
.wrap td{white-space:pre-wrap;overflow-wrap:anywhere}code{font:inherit}
.del{background:#ffebe9}.add{background:#e6ffec}.none{background:#f7f7f7}.del .mark{background:#ffc1bb}
.add .mark{background:#abf2bc}.gap{color:#57606a;background:#eef4fb;text-align:center;cursor:pointer}
.now td:first-child{box-shadow:inset 3px 0 #0b57d0}tr.now .c{outline:1px solid #0b57d0}
.comment{color:#6a737d}.string{color:#0a5c36}.word{color:#8b1fa8}.op{color:#0b4fb3}.number{color:#a04000}
.deco{color:#7a5c00}.diff td .hit{background:#ffe95c}
"""
_CONTROLS = """<label>function <select id='fn'><option value=''>all</option></select></label>
<label>search <input id='search' type='search' size='24'></label>
<label><input id='split' type='checkbox'> side by side</label>
<label><input id='wrap' type='checkbox'> wrap</label>
<label><input id='all' type='checkbox'> unchanged passes</label>
<span><button id='prev'>previous</button> <button id='next'>next change</button></span>
<span class='note'><kbd>n</kbd> <kbd>p</kbd> change, <kbd>j</kbd> <kbd>k</kbd> pass, <kbd>/</kbd> search</span>"""


def render(trace: Trace, title: str, context: int) -> str:
    """One HTML page that needs nothing else; the same trace gives the same bytes.

    Args:
        trace: what to show.
        title: where it comes from.
        context: equal lines to show around a change.
    """
    data = as_data(trace.stages) | {"context": context, "notes": trace.notes}
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>IR trace: {escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        f"<header><h1>{escape(title)}</h1>{_CONTROLS}</header>\n<nav><ul id='passes'></ul></nav>\n"
        f"<main id='main'><noscript>{_plain(data['stages'])}</noscript></main>\n"
        f"<script type='application/json' id='data'>{_json(data)}</script>\n<script>{SCRIPT}</script></body></html>\n"
    )


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _plain(stages: Sequence[Mapping[str, Any]]) -> str:
    """What a reader without scripts gets: which pass changed which functions."""
    rows = (
        f"<li>{escape(stage['name'])}: {escape(', '.join(name for name, _, _ in stage['changes']) or 'unchanged')}</li>"
        for stage in stages[1:]
    )
    return f"<p>The differences need JavaScript. Changed functions by pass:</p><ul>{''.join(rows)}</ul>"
