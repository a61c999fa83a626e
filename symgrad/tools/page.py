"""A scan as one HTML file, which needs nothing beside it.

In: ``Judged`` in the process that judged it; ``Scanned`` in the one that writes.  Out: HTML.

Formulas are MathML, which browsers show by themselves, where latex2mathml is installed
(``pip install symgrad[html]``); else they are shown as LaTeX.  Pictures are SVG, where graphlay is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from symgrad.codegen.environment import html_environment
from symgrad.proof.report.rendering import formulas_of
from symgrad.tools.judging import Judged

if TYPE_CHECKING:
    from symgrad.tools.scan import Scanned

MOST_OF_A_PICTURE = 200_000
"""Characters of an SVG; nobody reads a larger one."""
_ALIGNED = re.compile(r"(?<!\\)&")


def page(
    place: str, found: Sequence[Scanned], counts: dict[str, int], notes: Sequence[str],
    seconds: float, incomplete: str,
) -> str:  # fmt: skip
    """The file."""
    environment = html_environment()
    environment.filters["with_code"] = _with_code
    template = environment.get_template("scan.html.j2")
    return template.render(
        place=place, found=found, counts=counts, notes=notes, seconds=seconds, incomplete=incomplete
    )


def _with_code(text: str) -> str:
    """A text as HTML, with what stands in backquotes as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def report_html(one: Judged) -> str:
    """Formulas and a picture of one class: what the process that judged it alone can make."""
    parts = []
    if one.report is not None:
        for name in one.report.inputs:
            with suppress(Exception):  # a formula is no part of the verdict
                parts += list(_formulas(one.report, name))
    with suppress(Exception):  # of a layout that is not installed, say
        picture = _picture(one)
        if len(picture) > MOST_OF_A_PICTURE:
            picture = f"<p>a picture of {picture.count('<rect')} boxes is left out</p>"
        parts.append(f'<div class="picture">{picture}</div>')
    return "\n".join(parts)


def _formulas(report: Any, name: str) -> Iterator[str]:
    for label, where, lines in formulas_of(report, name):
        said = html.escape(f"{label} of {name}{where}")
        shown = "".join(f"<div>{_math(line)}</div>" for line in lines)
        yield f'<div class="formula"><p>{said}</p>{shown}</div>'


def _math(line: str) -> str:
    """A formula as MathML, or as it is where that cannot be made."""
    with suppress(Exception):
        from latex2mathml.converter import convert

        return str(convert(_unaligned(line), display="block"))
    return f"<code>{html.escape(line)}</code>"


def _unaligned(line: str) -> str:
    """Without the marks at which lines are aligned, but for those inside of ``cases``."""
    parts = re.split(r"(\\begin\{cases\}.*?\\end\{cases\})", line)
    return "".join(
        part if number % 2 else _ALIGNED.sub("", part) for number, part in enumerate(parts)
    )


def _picture(one: Judged) -> str:
    from symgrad.drawing import draw
    from symgrad.frontend.trace import trace_request

    if one.request is None:
        return ""
    svg = str(draw(trace_request(one.request)))
    return svg[svg.index("<svg") :]
