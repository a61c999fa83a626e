"""Scalar C functions of the user's own as ops: ``sg.custom_op``.

In: C text or a symbol of the C library, and its meaning or its derivative.  Out: an op as any
other, in the registry and in the frontend's table.
"""

from __future__ import annotations

from symgrad.custom.define import custom_op as custom_op
from symgrad.custom.define import undeclare as undeclare
from symgrad.custom.source import CustomOpError as CustomOpError
