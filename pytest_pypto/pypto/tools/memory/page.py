"""The page: one card per function, its source on the left, one panel per memory space beside it on the same lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from zlib import crc32

ROW = 17
"""Height of one line of the dump, in pixels."""

_STYLE = """
body{font:14px/1.5 system-ui,sans-serif;margin:1.5em;color:#222;background:#fff}
h1{font-size:1.3em;margin:0 0 .2em}h2{font-size:1.1em;margin:0}.note{color:#666}
.card{border:1px solid #ccc;border-radius:6px;margin:1.2em 0;overflow:auto}
.head{padding:.5em .8em;background:#f6f6f6;border-bottom:1px solid #ccc;position:sticky;left:0}
.body{display:flex;align-items:flex-start}
.src{font:12px/17px ui-monospace,monospace;flex:0 0 42em;overflow-x:auto;resize:horizontal;padding-top:62px}
.src div{white-space:pre;height:17px;cursor:default}
.src b{color:#999;font-weight:normal;display:inline-block;width:3.5em}
.panel{flex:0 0 300px;border-left:1px solid #ddd}.cap{height:62px;font-size:12px;line-height:1.3;padding:4px 6px;
box-sizing:border-box;overflow:hidden}.area{position:relative;background:#fafafa}
.box{position:absolute;box-sizing:border-box;border:1px solid rgba(0,0,0,.45);border-radius:2px;overflow:hidden;
font:11px/15px ui-monospace,monospace;padding:0 2px;white-space:nowrap;min-width:2px;
left:calc(100% * var(--at) / var(--bytes));width:calc(100% * var(--n) / var(--bytes))}
.view{border-style:dashed;background:none!important}.ring{opacity:.55}
.clash{background:#e53935!important;color:#fff;border-color:#7f0000}
.lit{background:#fff3b0}.box.lit{outline:2px solid #111;z-index:3}.full{color:#b00020;font-weight:bold}
button{font:inherit}
"""
_SCRIPT = """
const lit=(els)=>{document.querySelectorAll('.lit').forEach(e=>e.classList.remove('lit'));
els.forEach(e=>e.classList.add('lit'))};
document.querySelectorAll('.card').forEach(card=>{
const boxes=[...card.querySelectorAll('.box')],rows=[...card.querySelectorAll('.src div')];
const spans=(box,n)=>+box.dataset.first<=n&&n<=+box.dataset.last;
boxes.forEach(box=>box.addEventListener('mouseenter',()=>lit([box,...rows.filter(r=>spans(box,+r.dataset.line)),
...boxes.filter(b=>b.dataset.base===box.dataset.base)])));
rows.forEach(row=>row.addEventListener('mouseenter',()=>lit([row,...boxes.filter(b=>spans(b,+row.dataset.line))])));
card.addEventListener('mouseleave',()=>lit([]));
});
let whole=false;
document.getElementById('scale').addEventListener('click',()=>{whole=!whole;
document.querySelectorAll('.area').forEach(a=>a.style.setProperty('--bytes',whole?a.dataset.limit:a.dataset.hwm))});
"""


def render(data: Mapping[str, Any], source: Sequence[str]) -> str:
    """One HTML page that needs nothing else; `source` are the lines of the dump."""
    backend = data["backend"]
    arch = f"{backend['name']} ({backend['arch']})" if backend else "unknown architecture, no capacities"
    where = f"{escape(data['dump'])}, after {escape(data['pass_name'])}, {escape(arch)}"
    cards = "\n".join(_card(function, source) for function in data["functions"])
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>memory map</title>"
        f"<style>{_STYLE}</style></head><body>\n<h1>Memory map</h1><p class='note'>{where}. Across: bytes. "
        "Down: lines of the dump. Dashed: views. Pale: ring buffers. Red: two allocations need "
        "the same bytes at the same time. "
        "<button id='scale'>used bytes / whole memory</button></p>\n"
        f"{cards}\n<script type='application/json' id='data'>{_json(data)}</script><script>{_SCRIPT}</script>"
        "</body></html>\n"
    )


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data).replace("<", "\\u003c")


def _card(function: Mapping[str, Any], source: Sequence[str]) -> str:
    first, last = function["first"], function["last"]
    rows = "".join(
        f"<div data-line='{n}'><b>{n}</b>{escape(source[n - 1].removeprefix('    '))}</div>"
        for n in range(first, last + 1)
    )
    panels = "".join(_panel(space, function) for space in function["spaces"])
    clashes = sum(1 for box in function["boxes"] if box["conflict"])
    warning = f" <span class='full'>{clashes} boxes in conflict</span>" if clashes else ""
    return (
        f"<div class='card'><div class='head'><h2>{escape(function['name'])} ({function['kind']}){warning}</h2></div>"
        f"<div class='body'><div class='src'>{rows}</div>{panels}</div></div>"
    )


def _panel(space: Mapping[str, Any], function: Mapping[str, Any]) -> str:
    high, limit = space["hwm"], space["limit"]
    height = (function["last"] - function["first"] + 1) * ROW
    boxes = "".join(_box(box, function["first"]) for box in function["boxes"] if box["space"] == space["space"])
    scale = max(high, 1)
    return (
        f"<div class='panel'><div class='cap'><strong>{space['space']}</strong> {_usage(high, limit)}<br>"
        f"{_count(space['tiles'], 'tile')} in {_count(space['bases'], 'allocation')}</div>"
        f"<div class='area' style='height:{height}px;--bytes:{scale}' data-hwm='{scale}' data-limit='{limit or scale}'>"
        f"{boxes}</div></div>"
    )


def _usage(high: int, limit: int | None) -> str:
    if not limit:
        return f"{high:,} bytes"
    css = " class='full'" if high > limit else ""
    return f"<span{css}>{high:,} of {limit:,} bytes ({100 * high / limit:.1f}%)</span>"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _box(box: Mapping[str, Any], top: int) -> str:
    name, aliases = box["name"], box["aliases"]
    label = escape(f"{name} +{len(aliases)}" if aliases else name)
    tip = [f"{name}: {box['type']}", f"bytes {box['offset']}..{box['offset'] + box['size'] - 1} of {box['space']}"]
    tip += [f"allocation {box['base']}", f"lines {box['first']}..{box['last']}"]
    tip += [f"also {', '.join(aliases)}"] if aliases else []
    tip += [f"conflict with {', '.join(box['conflicts_with'])}"] if box["conflict"] else []
    css = " ".join(c for c, on in (("view", box["view"]), ("ring", box["ring"]), ("clash", box["conflict"])) if on)
    y, height = (box["first"] - top) * ROW, (box["last"] - box["first"] + 1) * ROW
    place = f"--at:{box['offset']};--n:{box['size']};top:{y}px;height:{height}px;background:{_colour(box['base'])}"
    return (
        f"<div class='box {css}' style='{place}' title='{escape(chr(10).join(tip))}' data-base='{escape(box['base'])}' "
        f"data-first='{box['first']}' data-last='{box['last']}'>{label}</div>"
    )


def _colour(base: str) -> str:
    return f"hsl({crc32(base.encode()) % 360} 60% 78%)"
