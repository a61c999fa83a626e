"""What a size of a record of calls is called in the graphs.

In: names.  Out: the size of a graph that a name of the record stands for.
"""

from __future__ import annotations

from collections.abc import Collection


def size_called(name: str, known: Collection[str]) -> tuple[str, ...]:
    """The sizes of a graph that ``name`` may be: a name that Python needs has underscores there."""
    if name in known:
        return (name,)
    return tuple(sorted(one for one in known if one.strip("_") == name.strip("_")))
