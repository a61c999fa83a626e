"""The table of the mutation benchmark.

In: the records of ``benchmarks.mutation``.  Out: Markdown, and the mutants that were proved
though they differ.
"""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

Record = dict[str, Any]

REFUSED = ("REFUTED", "SURROGATE")
_NOT_DIFFERENT = ("same", "unclear", "raises")
_PEERS = {
    "gradcheck": "torch gradcheck",
    "gradcheck fast": "torch gradcheck, fast_mode",
    "check_grads": "JAX check_grads of the sum",
}


def table(records: list[Record], seed: int) -> tuple[str, list[Record]]:
    """The benchmark's page, and the lies: mutants that differ and were PROVED."""
    differing = [one for one in records if _differs(one)]
    same = [one for one in records if one["truth"] == "same"]
    lies = [one for one in differing if one["symgrad"] == "PROVED"]
    slandered = [one for one in same if one["symgrad"] in REFUSED]
    sample = [one for one in differing if "gradcheck" in one]
    parts = [
        "# Mutants of right backwards\n",
        f"{len(records):,} random edits of {len({one['name'] for one in records})} right backwards "
        f"(seed {seed}): {len(differing):,} differ from the true gradient, {len(same):,} do not, "
        f"{_count(records, 'raises'):,} raise wherever they are tried, "
        f"{len(records) - len(differing) - len(same) - _count(records, 'raises'):,} are unclear.\n",
        f"**Differ and were PROVED: {len(lies)}.** Do not differ and were REFUTED: "
        f"{len(slandered)}.\n",
        _peers_table(differing, sample),
        _verdict_table(differing, same),
        *_listed("Proved though they differ", lies),
        *_listed("Refuted though they do not differ", slandered),
    ]
    return "\n".join(parts), lies


def _differs(record: Record) -> bool:
    truth = record["truth"]
    return truth not in _NOT_DIFFERENT and not truth.startswith("broken")


def _count(records: list[Record], truth: str) -> int:
    broken = [one for one in records if one["truth"].startswith("broken")]
    return sum(one["truth"] == truth for one in records) + len(broken)


def _caught(record: Record) -> bool:
    return bool(record["symgrad"] in REFUSED)


def _peers_table(differing: list[Record], sample: list[Record]) -> str:
    rows = ["| judge | mutants | caught | missed | median | mean |", "|---|--:|--:|--:|--:|--:|"]
    rows.append(_row("symgrad", differing, [_caught(one) for one in differing], "symgrad"))
    if sample:
        rows.append(
            _row("symgrad, the same sample", sample, [_caught(one) for one in sample], "symgrad")
        )
    for key, name in _PEERS.items():
        if sample:
            rows.append(_row(name, sample, [one[key] == "caught" for one in sample], key))
    return "\n".join(rows) + "\n"


def _row(name: str, records: list[Record], caught: list[bool], key: str) -> str:
    seconds = [1000 * one["seconds"][key] for one in records] or [0.0]
    share = 100 * sum(caught) / max(len(caught), 1)
    return (
        f"| {name} | {len(records):,} | {share:.2f} % | {len(caught) - sum(caught):,} "
        f"| {statistics.median(seconds):.1f} ms | {statistics.fmean(seconds):.1f} ms |"
    )


def _verdict_table(differing: list[Record], same: list[Record]) -> str:
    words = sorted({one["symgrad"] for one in [*differing, *same]})
    rows = ["| symgrad says | of those that differ | of those that do not |", "|---|--:|--:|"]
    counts = [Counter(one["symgrad"] for one in group) for group in (differing, same)]
    rows += [f"| {word} | {counts[0][word]:,} | {counts[1][word]:,} |" for word in words]
    return "\n".join(rows) + "\n"


def _listed(title: str, records: list[Record]) -> list[str]:
    if not records:
        return []
    lines = [f"- {one['name']}: {one['description']} ({one['truth']})" for one in records[:50]]
    return [f"## {title}\n", *lines, ""]
