"""A built package, proved again: does its manifest still tell the truth?

In: the folder of a package, where the sources lie.  Out: ``Certificate``: what agrees and what
differs, op by op.  Imports: ``symgrad.compiler``, ``symgrad.manifest``, ``symgrad.kernels``,
``symgrad.discover``, ``symgrad.runtime.package``.

Three things are compared with the manifest: the files of the package; the sources, traced and
proved anew, with the digests of forward, backward and both sides of each gradient; and the C that
is emitted for them now.  Versions of libraries may differ: they are named, and do not count.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symgrad import compiler, discover
from symgrad.errors import SpecError, SymgradError
from symgrad.frontend.function import Function
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.manifest import Asked, packaged_op, versions
from symgrad.plain import stated
from symgrad.runtime.package import MANIFEST, PackagedOp

_DIGESTS = {
    "source_sha256": "the source", "forward_sha256": "the traced forward",
    "backward_sha256": "the traced backward", "graph_sha256": "the traced graph",
}  # fmt: skip


@dataclass(frozen=True)
class OpCertificate:
    """One op, or what belongs to all: what agrees with the manifest, and what does not."""

    name: str
    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    def __str__(self) -> str:
        state = "DIFFERS" if self.differs else "agrees"
        lines = [f"{self.name}: {state}", *(f"  differs: {said}" for said in self.differs)]
        lines += [f"  agrees: {', '.join(self.agrees)}"] if self.agrees else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Certificate:
    """All of a package.  ``notes``: what differs but does not count."""

    folder: str
    ops: tuple[OpCertificate, ...]
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Does everything agree?"""
        return not any(op.differs for op in self.ops)

    def __bool__(self) -> bool:
        return self.holds

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "folder": self.folder,
            "holds": self.holds,
            "ops": {
                op.name: {"agrees": list(op.agrees), "differs": list(op.differs)} for op in self.ops
            },
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        verdict = "the certificate holds" if self.holds else "the certificate does NOT hold"
        notes = (f"note: {note}" for note in self.notes)
        return "\n".join([f"{self.folder}: {verdict}", *map(str, self.ops), *notes])


def check(folder: Path, root: Path | None = None) -> Certificate:
    """Prove a package again.

    ``root``: the folder that the sources are named relative to; by default the working folder and
    those above the package are tried.  Raises SpecError where there is no manifest.
    """
    manifest = _read(folder)
    files: Mapping[str, str] = manifest["files"]
    wrong = dict(_wrong_files(folder, files))
    found = []
    rest = set(files)
    for stem, said in manifest["ops"].items():
        own = [name for name in files if name.partition(".")[0] in _stems(stem, manifest["ops"])]
        rest -= set(own)
        found.append(_op(stem, said, own, wrong, files, folder, root))
    common = _files("what the ops share", sorted(rest), wrong)
    return Certificate(str(folder), (*found, common), tuple(_version_notes(manifest)))


def _read(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if isinstance(manifest["ops"], dict) and isinstance(manifest["files"], dict):
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise SpecError(
        f"{folder} has no manifest that can be read", hint="name a folder that symgrad build wrote"
    )


def _stems(stem: str, ops: Mapping[str, Any]) -> set[str]:
    """The names of an op's files, without what follows the dot."""
    return {stem, *(name for name in (f"{stem}_pruned",) if name not in ops)}


def _wrong_files(folder: Path, files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, digest in files.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            yield name, f"the manifest lists {name}, which lies outside of the package"
        elif not path.is_file():
            yield name, f"{name} is missing"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            yield name, f"{name} was changed after it was written"


def _files(name: str, own: Sequence[str], wrong: Mapping[str, str]) -> OpCertificate:
    differs = tuple(wrong[file] for file in own if file in wrong)
    agrees = (f"{len(own) - len(differs)} files",) if len(own) > len(differs) else ()
    return OpCertificate(name, agrees, differs)


def _version_notes(manifest: Mapping[str, Any]) -> Iterator[str]:
    now = versions()
    for name, before in sorted(manifest.get("versions", {}).items()):
        if now.get(name) != before:
            yield f"written with {name} {before}, proved again with {now.get(name)}"


# -- one op


def _op(
    stem: str, said: Mapping[str, Any], own: Sequence[str], wrong: Mapping[str, str],
    files: Mapping[str, str], folder: Path, root: Path | None,
) -> OpCertificate:  # fmt: skip
    written = _files(stem, own, wrong)
    try:
        function, place = _function(said, folder, root)
        now = _proved_again(stem, said, function, place)
    except SymgradError as error:
        hint = f" ({error.hint})" if error.hint else ""
        missing = f"it cannot be proved again: {error.what}{hint}"
        return OpCertificate(stem, written.agrees, (*written.differs, missing))
    agrees, differs = list(written.agrees), list(written.differs)
    for same, what in (*_digests(said, now.record), *_proof(said["proof"], now.record["proof"])):
        (agrees if same else differs).append(what)
    emitted = {f"{stem}.py": now.wrapper, **now.texts}
    other = sorted(
        name for name in {*emitted, *own}
        if name not in emitted or files.get(name) != _sha256(emitted[name])
    )  # fmt: skip
    if other:
        differs.append(f"what is emitted now: {', '.join(other)}")
    else:
        agrees.append("what is emitted now")
    return OpCertificate(stem, tuple(agrees), tuple(differs))


def _function(
    said: Mapping[str, Any], folder: Path, root: Path | None
) -> tuple[type[Function], Path]:  # fmt: skip
    """The Function that an op was built from, and the folder its file is named relative to."""
    file = said.get("file")
    if not file:
        raise SpecError("the manifest names no source file")
    resolved = folder.resolve()
    places = [root] if root is not None else [Path.cwd(), resolved, *resolved.parents]
    for place in places:
        if (place / file).is_file():
            found = discover.functions(str(place / file))
            named = [cls for cls in found if said["function"] in (cls.__name__, cls.__qualname__)]
            if not named:
                raise SpecError(f"{place / file} has no Function {said['function']!r} any more")
            return named[0], place.resolve()
    raise SpecError(
        f"the source {file} was not found", hint="say --root, the folder that it is relative to"
    )


def _proved_again(
    stem: str, said: Mapping[str, Any], function: type[Function], place: Path
) -> PackagedOp:  # fmt: skip
    specs = tuple(said.get("specs") or ())
    static = _values(said.get("static", {}))
    assume = dict(said.get("assume", {}))
    report = compiler.verify(function, *specs, static=static, assume=assume, suggest=False)
    planned = plan(trace(function, *specs, static=static, assume=assume), name=stem)
    return packaged_op(planned, report, Asked(specs, place))


def _values(written: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name, text in written.items():
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise SpecError(f"the value of {name} is no literal: {text}") from None
    return found


def _digests(said: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    for key, what in _DIGESTS.items():
        if key in said:
            yield said[key] == now[key], what


def _proof(said: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """The verdicts, the conditions and the normal forms of each gradient."""
    yield (
        said["verdict"] == now["verdict"],
        f"{said['verdict']}, now {now['verdict']}" if said["verdict"] != now["verdict"]
        else f"{now['verdict']} again{stated(now['values'].items())}",
    )  # fmt: skip
    for name in sorted({*said["gradients"], *now["gradients"]}):
        before, after = said["gradients"].get(name, {}), now["gradients"].get(name, {})
        parts = [
            words for key, words in (
                ("verdict", "verdict"), ("conditions", "conditions"),
                ("hand_written_sha256", "normal form of the hand-written side"),
                ("true_sha256", "normal form of the true side"),
            ) if before.get(key) != after.get(key)
        ]  # fmt: skip
        yield not parts, f"the gradient of {name}{': ' if parts else ''}{', '.join(parts)}"
    for key in ("values", "derived", "domain", "protocol"):
        if key in said:
            yield said[key] == now[key], f"the {key}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
