"""What symgrad answers falsely today, and what is right and UNDECIDED: program names by kind.

Strict: a program that is answered truly, or PROVED, must be taken out of here.  The aim is an
empty table.
"""

from __future__ import annotations

# families of drawn programs of which something false is said
OPEN_FAMILIES: tuple[str, ...] = (
    "witness",
    "null set",
    "removable",
    "question",
    "mask",
    "state",
    "literal",
    "spelling",
)

FALSE: dict[str, str] = {}

UNDECIDED: dict[str, str] = {
    "tables": """
        ByNumelRight
        RowsColumnsSame
    """,
}
