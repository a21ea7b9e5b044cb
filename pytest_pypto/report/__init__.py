"""Renderings of a verdict: text, heat map, HTML, JSON. A rendering never decides anything."""
