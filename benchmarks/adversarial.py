"""Adversarial programs: drawn to deceive the judge, labelled by torch, judged by symgrad.

    python -m benchmarks.adversarial --count 10000 --seed 0

In: the strategies of ``tests/suite/adversarial/generated.py``: a right backward, a class of slip,
a place where it hides.  Out: each program that is wrong and PROVED with nothing printed that
excludes the point, each that is right and REFUTED, and a table of verdicts by class.  One line of
JSON a program is appended to ``--log``; a second run takes up where the first stopped.  Exits 1 if
anything that was said is false.

torch decides what is true, in float64 against difference quotients: at generic points, where the
slip may hide, and at the counterexample of whatever is REFUTED.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

import symgrad as sg
from tests.suite.adversarial.generated import FAMILIES, Draft, drafts
from tests.suite.adversarial.judged import REFUTED, complaints, judge
from tests.suite.adversarial.program import RIGHT
from tests.suite.adversarial.torch_truth import confirmed, labelled

LOG = Path(__file__).parent.parent / "build" / "adversarial.jsonl"
BLOCK = 40  # programs that one seed of hypothesis draws


def block(number: int, seed: int, families: tuple[str, ...]) -> list[Draft]:
    """The programs of one block."""
    found: list[Draft] = []

    @seeded(seed * 1_000_003 + number)
    @settings(
        max_examples=BLOCK, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(drafts(families))
    def collect(draft: Draft) -> None:
        found.append(draft)

    collect()
    return found


def drawn(seed: int, families: tuple[str, ...]) -> Iterator[tuple[str, Draft]]:
    """Programs that differ, without end, with their digests."""
    seen: set[str] = set()
    number = 0
    while True:
        for draft in block(number, seed, families):
            key = f"{draft.text}{draft.order}{draft.specs}{dict(draft.static)}"
            digest = hashlib.sha256(key.encode()).hexdigest()[:16]
            if digest not in seen:
                seen.add(digest)
                yield digest, draft
        number += 1


def examined(draft: Draft) -> dict[str, Any]:
    """What is true of a program, what is said of it, and what of that is false."""
    started = time.process_time()
    program = labelled(draft, sg)
    record: dict[str, Any] = {"family": draft.family, "text": draft.text, "order": draft.order}
    if program is None:
        return {**record, "label": "unclear", "verdict": "", "false": []}
    judged = judge(program)
    found = complaints(program, judged)
    if program.label == RIGHT and judged.verdict == REFUTED and confirmed(draft, judged.report):
        found = [said for said in found if not said.startswith("REFUTED though")]
        record["label"] = "wrong at its counterexample"
    said = str(judged.report or judged.said) if found else ""
    return {
        "label": program.label, **record, "verdict": judged.verdict, "false": found, "said": said,
        "fails": [str(point) for point in program.fails],
        "seconds": round(time.process_time() - started, 3),
    }  # fmt: skip


def _logged(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {record["digest"]: record for record in records}


def shown(record: dict[str, Any]) -> str:
    """A program about which something false was said."""
    points = "".join(f"\n# wrong at {point}" for point in record["fails"])
    said = "\n".join(record["false"])
    return f"\n--- {record['family']}: {record['label']}, {said}{points}\n{record['text']}"


def summary(records: list[dict[str, Any]]) -> str:
    """How many programs of each class got which verdict."""
    counted = Counter((one["family"], one["label"], one["verdict"]) for one in records)
    lines = [f"{family:18}{label:29}{verdict:11}{count:7}" for (family, label, verdict), count
             in sorted(counted.items())]  # fmt: skip
    false = sum(bool(one["false"]) for one in records)
    return "\n".join([*lines, f"{len(records)} programs, something false was said of {false}"])


def main() -> int:
    """Draw, judge, print; 1 if anything that was said is false."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), default=[])
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--fresh", action="store_true", help="forget the log")
    parser.add_argument("--quiet", action="store_true", help="print no programs")
    options = parser.parse_args()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        options.log.unlink(missing_ok=True)
    torch.set_num_threads(1)
    done, records = _logged(options.log), []
    families = tuple(options.family) or tuple(FAMILIES)
    with options.log.open("a", encoding="utf-8") as log:
        for (digest, draft), _ in zip(drawn(options.seed, families), range(options.count)):  # noqa: B905
            record = done.get(digest)
            if record is None:
                record = {"digest": digest, **examined(draft)}
                log.write(json.dumps(record) + "\n")
                log.flush()
                if record["false"] and not options.quiet:
                    print(shown(record), flush=True)
            records.append(record)
    print(summary(records))
    return int(any(one["false"] for one in records))


if __name__ == "__main__":
    sys.exit(main())
