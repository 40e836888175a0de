"""Builds HTML and SVG; plain strings are escaped."""

from html import escape


class Html(str):
    """Markup. Any other string is text, which `element` and `join` escape."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str | float | None) -> Html:
    """An element. `class_` is class, `font_size` font-size; attributes that are None are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """The children, concatenated."""
    return Html("".join(c if isinstance(c, Html) else escape(c) for c in children))


def table(head: list[str], rows: list[list[str]], caption: str = "") -> Html:
    """A table in a scrollable box, so that a wide one does not widen the page."""
    header = element("tr", *[element("th", cell, scope="col") for cell in head])
    body = [
        element("tr", element("th", first, scope="row"), *[element("td", cell) for cell in cells])
        for first, *cells in rows
    ]
    parts = [element("thead", header), element("tbody", *body)]
    if caption:
        parts.insert(0, element("caption", caption))
    return element("div", element("table", *parts), class_="scroll", tabindex="0")


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
