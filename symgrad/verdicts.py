"""The cache of verdicts: what was PROVED is not proved again.

In: what a proof sees, and the proof.  Out: its report, made now or kept from another time.

The key of an entry is a digest of everything that the proof sees: every trace with the source lines
that it points to, what is asked, symgrad's own source, and the versions of Python and of the
libraries that decide.  A Function is traced each time, so that values of closures and globals,
shapes, assumptions and plain arguments are in the key as far as the program depends on them.  What
the proof has traced on the way is written into the entry, with digests, and traced again before the
report is taken: the proof computes from these alone, so that it would do the same again.

While one verdict is made, what was proved of one call is taken for others that trace alike.

Only ``PROVED`` is kept.  Nothing is kept, or taken, where something has no bytes of its own: a
value of the user's that is no plain data, an op that is not symgrad's.  An entry that is damaged,
or lies where others can write, does not count (``runtime/cache.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from symgrad import deadline
from symgrad.budgets import MOST_VERDICTS
from symgrad.fitted import note, noted
from symgrad.ir.encoding import Uncoded
from symgrad.kept import digest_of, key_of
from symgrad.runtime.cache import read_note, write_note

if TYPE_CHECKING:
    from symgrad.proof.report.records import Report

LAYOUT = "verdicts-1"
"""The folder beside that of kernels; another layout of entries lies beside it."""
Traces = Mapping[str, Callable[..., Any]]
"""What a proof may trace on the way, by name; arguments are plain data."""

_used: ContextVar[bool] = ContextVar("used", default=False)


@contextmanager
def used(wanted: bool = True) -> Iterator[None]:
    """Inside, verdicts are taken from the cache and kept there."""
    token = _used.set(wanted)
    try:
        yield
    finally:
        _used.reset(token)


def report_on(seen: Sequence[Any], traces: Traces, prove: Callable[[Traces], Report]) -> Report:
    """The report that ``prove`` makes of ``seen`` and of what it traces, or once made of them."""
    own = _own_key(seen)
    known: tuple[list[tuple[str, list[Any], str]], Report] | None = noted(own)
    if known is not None and _same(known[0], traces):
        return known[1]
    key = key_of(seen, _ROOMS, _LIBRARIES) if _used.get() else None
    kept = _kept(key, traces, prove) if key is not None else None
    if own is None or kept is not None:
        return kept or prove(traces)
    recorder = _Recorder(traces)
    report = prove(recorder.traces)
    proved = str(report.verdict) == "PROVED" and report.repair is None
    if proved and recorder.whole and not deadline.passed():
        note(own, (recorder.asked, report))
        if key is not None:
            _keep(key, recorder.asked, report)
    return report


def _own_key(seen: Sequence[Any]) -> tuple[str, str] | None:
    """The key while a verdict is made: calls that trace alike are one, whatever is passed."""
    try:
        return "report", digest_of(seen, plain=False)
    except (Uncoded, RecursionError):
        return None


_ROOMS = ("autodiff", "frontend", "index", "ir", "ops", "passes", "proof")
"""The packages that a verdict is made by; it cannot import others."""
_LIBRARIES = ("flint", "mpmath", "numpy", "sympy")


# -- entries


class _Recorder:
    """Writes down what a proof traces.  ``whole``: all of it could be written down."""

    def __init__(self, traces: Traces) -> None:
        self.asked: list[tuple[str, list[Any], str]] = []
        self.whole = True
        self.traces = {name: self._recorded(name, trace) for name, trace in traces.items()}

    def _recorded(self, name: str, trace: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any) -> Any:
            whole, self.whole = self.whole, False
            found = trace(*args)  # what it raises the proof may take for an answer
            with suppress(Uncoded, RecursionError):
                self.asked.append((name, _listed(args), digest_of(found, plain=False)))
                self.whole = whole
            return found

        return recorded


def _listed(args: Sequence[Any]) -> list[Any]:
    """Arguments of a trace as JSON: texts, and sets of texts as sorted lists."""
    return [sorted(arg) if isinstance(arg, frozenset) else arg for arg in args]


def _keep(key: str, asked: Sequence[tuple[str, list[Any], str]], report: Report) -> None:
    from symgrad.proof.report.stored import NotStored, stored

    with suppress(NotStored):
        text = json.dumps({"asked": asked, "report": stored(replace(report, details={}))})
        write_note(key, text, LAYOUT, MOST_VERDICTS)


def _kept(key: str, traces: Traces, prove: Callable[[Traces], Report]) -> Report | None:
    """The report of an entry whose traces are the same today."""
    text = read_note(key, LAYOUT)
    if text is None:
        return None
    from symgrad.proof.report.stored import restored_report
    from symgrad.proof.report.verdict import Verdict

    try:
        entry = json.loads(text)
        report = restored_report(entry["report"])
        asked = [(name, args, check) for name, args, check in entry["asked"]]
    except Exception:  # it may hold anything
        return None
    if report.verdict is not Verdict.PROVED or not _same(asked, traces):
        return None
    return replace(report, details=_Details(lambda: prove(traces).details))


def _same(asked: Sequence[tuple[str, list[Any], str]], traces: Traces) -> bool:
    for name, args, check in asked:
        given = [frozenset(arg) if isinstance(arg, list) else arg for arg in args]
        try:
            found = digest_of(traces[name](*given), plain=False)
        except Exception:  # the proof says what is wrong
            return False
        if found != check:
            return False
    return True


class _Details(Mapping[str, Any]):
    """What a report makes on demand, formulas, of which the proof is made again."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = cache(make)

    def __getitem__(self, name: str) -> Any:
        return self._make()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make())

    def __len__(self) -> int:
        return len(self._make())
