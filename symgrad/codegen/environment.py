"""Where templates come from and how they are read.

In: nothing.  Out: the one Jinja environment.
"""

from __future__ import annotations

from functools import lru_cache

import jinja2


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The environment of all templates: a hole without a value is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("symgrad.templates", ""),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
