"""Reports as plain data, to be kept, and back.

In: a report without what is made on demand.  Out: what JSON can hold, or ``NotStored``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from symgrad.errors import Location
from symgrad.proof.report.records import (
    CaseReport,
    Condition,
    CounterexampleReport,
    Finding,
    InputReport,
    Replayed,
    Report,
)
from symgrad.proof.report.verdict import Verdict

_RECORDS: dict[str, Any] = {
    one.__name__: one
    for one in (
        CaseReport, Condition, CounterexampleReport, Finding, InputReport, Location, Replayed,
        Report,
    )
}  # fmt: skip


class NotStored(Exception):
    """There is something in a report that plain data cannot say."""


def stored(value: Any) -> Any:
    """A report, or a part of one, as plain data.  Raises NotStored."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Verdict):
        return ["verdict", value.value]
    if type(value) in (tuple, list):
        return [type(value).__name__, *map(stored, value)]
    if isinstance(value, Mapping):
        return ["dict", *([stored(key), stored(one)] for key, one in value.items())]
    if _RECORDS.get(type(value).__name__) is type(value):
        return [
            type(value).__name__, *(stored(getattr(value, field.name)) for field in fields(value)),
        ]  # fmt: skip
    raise NotStored(type(value).__qualname__)


def restored_report(data: Any) -> Report:
    """The report that ``stored`` was given.  Raises some Exception for what is none."""
    found = restored(data)
    if not isinstance(found, Report) or not all(
        isinstance(one, InputReport) for one in found.inputs.values()
    ):
        raise ValueError("this is no report")
    return found


def restored(data: Any) -> Any:
    """What ``stored`` was given.  Raises some Exception for data that it does not make."""
    if not isinstance(data, list):
        return data
    kind, *parts = data
    if kind == "verdict":
        return Verdict(*parts)
    if kind == "dict":
        return {restored(key): restored(one) for key, one in parts}
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(map(restored, parts))
    record = _RECORDS[kind]
    if len(parts) != len(fields(record)):
        raise ValueError(f"{kind} has {len(fields(record))} fields")
    return record(*map(restored, parts))
