"""Where templates come from and how they are read.

In: nothing.  Out: the Jinja environments, of texts and of HTML.
"""

from __future__ import annotations

from functools import lru_cache

import jinja2


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The environment of all templates of texts: a hole without a value is an error."""
    return _environment(autoescape=False)


def html_environment() -> jinja2.Environment:
    """A new environment for HTML, in which what is put in is text."""
    return _environment(autoescape=True)


def _environment(*, autoescape: bool) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("symgrad.templates", ""),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=autoescape,
    )
