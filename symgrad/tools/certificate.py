"""Proves a built package again and compares it with its manifest.

In: the folder of a package, the folder of the sources.  Out: ``Certificate``: what agrees and what
differs, op by op.

Four things are compared with the manifest:

- the files of the package: none is missing, none is unlisted, none is writable by everybody;
- the sources, traced and proved again: the digests of forward, backward and both sides of each
  gradient;
- every text that symgrad emits for them now;
- the shared objects: what the C compiler makes of these texts.

The manifest must state nothing else, and nothing twice.  Versions of libraries may differ: notes
name them.  The sources are imported, as ``verify`` does; no file of the package is imported.
"""

from __future__ import annotations

import ast
import json
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symgrad import compiler
from symgrad.codegen.emit.file import PRELUDE, prelude
from symgrad.codegen.wrapper import render_package
from symgrad.errors import SpecError, SymgradError
from symgrad.frontend.function import Function
from symgrad.frontend.plain import numbers
from symgrad.frontend.request import bind
from symgrad.manifest import VERSIONS, packaged_op, versions
from symgrad.plain_values import stated
from symgrad.runtime.contents import Contents, built_files, built_otherwise, contents
from symgrad.runtime.digests import programs_name
from symgrad.runtime.libraries import MANIFEST, read_op
from symgrad.runtime.package import (
    PackagedOp,
    check_stem,
    shared_files,
    text_digest,
)
from symgrad.tools import discover, importing
from symgrad.tools.configured import Configured

_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,64}")
_STATED = {
    "inputs": "the inputs", "source_sha256": "the source", "forward_sha256": "the traced forward",
    "backward_sha256": "the traced backward", "graph_sha256": "the traced graph",
    "validation": "the validation of the C",
}  # fmt: skip
_OF_GRADIENTS = {
    "verdict": "verdict", "conditions": "conditions",
    "hand_written_sha256": "normal form of the hand-written side",
    "true_sha256": "normal form of the true side",
}  # fmt: skip


@dataclass(frozen=True)
class OpCertificate:
    """What agrees with the manifest and what does not, of one op or of what all ops share.

    ``limits``: what sizes have to meet for its C to be validated.
    """

    name: str
    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()

    def __str__(self) -> str:
        state = "DIFFERS" if self.differs else "agrees"
        lines = [f"{self.name}: {state}", *(f"  differs: {said}" for said in self.differs)]
        lines += [f"  agrees: {', '.join(self.agrees)}"] if self.agrees else []
        lines += [f"  validated for: {', '.join(self.limits)}"] if self.limits else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Certificate:
    """The result for a package.  ``notes``: differences that do not count."""

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
                op.name: {
                    "agrees": list(op.agrees),
                    "differs": list(op.differs),
                    "limits": list(op.limits),
                }
                for op in self.ops
            },
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        verdict = "the certificate holds" if self.holds else "the certificate does NOT hold"
        notes = (f"note: {note}" for note in self.notes)
        return "\n".join([f"{self.folder}: {verdict}", *map(str, self.ops), *notes])


def check(folder: Path, root: Path | None = None) -> Certificate:
    """Prove a package again.

    ``root``: the folder that the manifest names sources relative to; sources outside of it are
    refused.  By default the working folder and the folders above the package are tried.  Raises
    SpecError where there is no manifest.
    """
    manifest = _read(folder)
    try:
        package = _Package(folder, root, manifest["ops"], manifest["files"], contents(folder))
    except OSError as error:
        raise SpecError(f"{folder} cannot be read: {error.strerror or error}") from error
    found = [_op(stem, _table(said), package) for stem, said in manifest["ops"].items()]
    common = _common(sorted(manifest["ops"]), package, tuple(_unchecked(manifest)))
    return Certificate(str(folder), (*found, common), tuple(_version_notes(manifest)))


def _read(folder: Path) -> dict[str, Any]:
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        manifest = json.loads(text, object_pairs_hook=_once)
        if isinstance(manifest["ops"], dict) and isinstance(manifest["files"], dict):
            return dict(manifest)
    except SpecError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise SpecError(
        f"{folder} has no manifest that can be read", hint="name a folder that symgrad build wrote"
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON in which no name stands twice: JSON does not say which one counts."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise SpecError(
                f"the manifest states {name!r} twice in one table",
                hint="rebuild the package: symgrad writes each name once",
            )
        found[name] = value
    return found


def _table(value: Any) -> dict[str, Any]:
    """A part of the manifest that should be a table; an empty table where it is none."""
    return value if isinstance(value, dict) else {}


@dataclass
class _Package:
    """A package while it is compared.  ``left``: the files that are not compared yet."""

    folder: Path
    root: Path | None
    ops: Mapping[str, Any]
    listed: Mapping[str, Any]
    there: Contents

    def __post_init__(self) -> None:
        self.left = {*self.listed, *self.there.digests} - {MANIFEST}

    def files(self, names: Sequence[str]) -> OpCertificate:
        """Compare files with the manifest."""
        self.left -= set(names)
        wrong = [said for name in names if (said := self._wrong(name))]
        agrees = (f"{len(names) - len(wrong)} files",) if len(names) > len(wrong) else ()
        return OpCertificate("", agrees, tuple(wrong))

    def _wrong(self, name: str) -> str:
        if name not in self.there.digests:
            outside = Path(name).is_absolute() or ".." in Path(name).parts
            where = ", which lies outside of the package" if outside else ""
            return f"{name} is missing{where}"
        if name not in self.listed:
            return f"the manifest does not list {name}"
        same = self.there.digests[name] == self.listed[name]
        return "" if same else f"{name} was changed after it was written"

    def other(self, emitted: Mapping[str, str], own: Sequence[str]) -> list[str]:
        """The files whose texts differ from what is emitted now."""
        return sorted(
            name for name in {*emitted, *own}
            if name not in emitted or self.listed.get(name) != text_digest(emitted[name])
        )  # fmt: skip

    def named(self, stem: str) -> list[str]:
        """The files that belong to an op by their names."""
        stems = {stem, f"{stem}_pruned", programs_name(stem)} - ({*self.ops} - {stem})
        return sorted(name for name in self.left if name.partition(".")[0] in stems)


def _common(
    stems: Sequence[str], package: _Package, unchecked: tuple[str, ...]
) -> OpCertificate:  # fmt: skip
    """What the ops share, and whatever is there or stated without belonging to the package."""
    emitted = {**shared_files(render_package(stems)), PRELUDE: prelude()}
    own = sorted({*emitted, *(name for name in package.left if name in package.listed)})
    written = package.files(own)
    other = package.other(emitted, own)
    differs = [*written.differs, *(f"what is emitted now: {name}" for name in other), *unchecked]
    strange = [*package.there.strange, *(f"{one} is not listed" for one in sorted(package.left))]
    differs += [f"not part of the package: {said}" for said in strange]
    return OpCertificate("what the ops share", written.agrees, tuple(differs))


def _unchecked(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Statements about the whole package that nothing confirms."""
    for name in sorted(manifest.keys() - {"ops", "files", *VERSIONS}):
        yield _unknown(name)
    known = _table(manifest.get("versions"))
    texts = all(isinstance(one, str) and _VERSION.fullmatch(one) for one in known.values())
    if (
        not texts
        or known.keys() != versions().keys()
        or manifest.get("symgrad") != known["symgrad"]
    ):
        yield "the versions are not those of symgrad and of the libraries that its proofs rely on"


def _unknown(name: str) -> str:
    return f"the manifest states {name!r}, which symgrad does not check"


def _version_notes(manifest: Mapping[str, Any]) -> Iterator[str]:
    now = versions()
    for name, before in sorted(_table(manifest.get("versions")).items()):
        if now.get(name) != before:
            yield f"written with {name} {before}, proved again with {now.get(name)}"


# -- one op


def _op(stem: str, said: Mapping[str, Any], package: _Package) -> OpCertificate:
    try:
        check_stem(stem)
        function, place = _function(said, package)
        on_numpy = f"{programs_name(stem)}.py" in package.listed
        now = _proved_again(stem, said, function, place, on_numpy)
    except SymgradError as error:
        written = package.files(package.named(stem))
        hint = f" ({error.hint})" if error.hint else ""
        missing = f"it cannot be proved again: {error.what}{hint}"
        return OpCertificate(stem, written.agrees, (*written.differs, missing))
    emitted = {f"{stem}.py": now.wrapper, **now.texts}
    own = sorted({*emitted, *package.named(stem)})
    written = package.files(own)
    agrees, differs = list(written.agrees), list(written.differs)
    for same, what in (*_record(said, now.record), *_proof(said, now.record["proof"])):
        (agrees if same else differs).append(what)
    if other := package.other(emitted, own):
        differs.append(f"what is emitted now: {', '.join(other)}")
    else:
        agrees.append("what is emitted now")
    for same, what in _built(now, package, sound=not differs):
        (agrees if same else differs).append(what)
    return OpCertificate(stem, tuple(agrees), tuple(differs), tuple(_limits(now.record)))


def _limits(record: Mapping[str, Any]) -> list[str]:
    """What sizes have to meet, for all kernels of an op."""
    kernels = _table(record.get("validation")).get("kernels") or {}
    return sorted({limit for one in kernels.values() for limit in one.get("limits", ())})


def _built(now: PackagedOp, package: _Package, *, sound: bool) -> Iterator[tuple[bool, str]]:
    """Compare the shared object, where there is one.  ``sound``: everything else agrees."""
    op = read_op(now.wrapper)
    names = [name for name in built_files(op) if name in package.left]
    package.left -= set(names)
    if not names:
        return
    if not sound:
        yield False, f"{names[0]} is not compared, since other things differ"
        return
    wrong = built_otherwise(package.folder, op, now.texts, package.there)
    yield not wrong, wrong or "the shared object, built again"


def _function(said: Mapping[str, Any], package: _Package) -> tuple[type[Function], Path]:
    """The Function that an op was built from, and the folder that its file is relative to."""
    file, name = said.get("file"), said.get("function")
    if not isinstance(file, str) or not isinstance(name, str) or not file.endswith(".py"):
        raise SpecError("the manifest names no source file")
    if Path(file).is_absolute() or ".." in Path(file).parts:
        raise SpecError(f"the source {file} is not named relative to the folder of the sources")
    for place in _places(package):
        path = place / file
        if not path.is_file():
            continue
        resolved = path.resolve()
        if not resolved.is_relative_to(place) or resolved.is_relative_to(package.folder.resolve()):
            raise SpecError(f"the source {path} leads out of {place}, or into the package")
        found = discover.defined(importing.load_file(path))
        named = [cls for cls in found if name in (cls.__name__, cls.__qualname__)]
        if not named:
            raise SpecError(f"{path} has no Function {name!r} any more")
        return named[0], place
    raise SpecError(
        f"the source {file} was not found", hint="say --root, the folder that it is relative to"
    )


def _places(package: _Package) -> Iterator[Path]:
    """The folders that sources are looked for in; none is writable by everybody."""
    if package.root is not None:
        yield package.root.resolve()
        return
    yield Path.cwd().resolve()
    for place in package.folder.resolve().parents:
        if place.stat().st_mode & stat.S_IWOTH:
            return
        yield place


def _proved_again(
    stem: str, said: Mapping[str, Any], function: type[Function], place: Path, on_numpy: bool
) -> PackagedOp:  # fmt: skip
    specs, assume = said.get("specs") or [], _table(said.get("assume"))
    shapes = specs.values() if isinstance(specs, dict) else specs
    texts = [*shapes, *assume.values()] if isinstance(specs, (list, dict)) else [7]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise SpecError("the shapes or assumptions in the manifest are not strings")
    static = _values(_table(said.get("static")))
    request = bind(function, specs, static, assume)
    values = _table(_table(said.get("proof")).get("values"))
    fixed = all(name in values for name in numbers(request))  # no number is passed
    declared = Configured().of(function)
    with nullcontext() if declared is None else declared.applied(function):
        planned, report = compiler.judged_plan(
            request, allow=("UNDECIDED", "REFUTED"), name=stem, suggest=False, fixed=fixed,
            prefer=said.get("prefer", "hand"),
        )  # fmt: skip
    emitted, validation = compiler.texts(
        planned, report, ("NOT VALIDATED",), validate="validation" in said, cached=False
    )
    return packaged_op(
        request, planned, report, emitted, validation, place, on_numpy=on_numpy
    )  # fmt: skip


def _values(written: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, text in written.items():
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            raise SpecError(f"the value of {name} is not a literal: {text}") from None
    return found


def _record(said: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """The statements about an op; a missing statement does not agree."""
    for key, what in _STATED.items():
        if key not in said and key not in now:
            continue
        same = key in said and _alike(said[key], now[key])
        yield same, what if key in said else f"{what}, which the manifest does not state"
    for key in sorted((said.keys() | now.keys()) - {"proof", *_STATED}):
        if key not in now:
            yield False, _unknown(key)
        elif key not in said or not _alike(said[key], now[key]):
            yield False, f"{key!r}, which would be {json.dumps(now[key])} now"


def _alike(said: Any, now: Any) -> bool:
    """Is it the same JSON?  ``==`` does not tell ``0``, ``0.0`` and ``False`` apart."""
    return json.dumps(said, sort_keys=True) == json.dumps(now, sort_keys=True)


def _proof(said: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """The verdicts, the conditions and the normal forms of each gradient."""
    proof = _table(said.get("proof"))
    held = stated(now["values"].items(), [*now.get("quantified", ()), *now["presences"]])
    yield (
        proof.get("verdict") == now["verdict"],
        f"{proof.get('verdict')}, now {now['verdict']}" if proof.get("verdict") != now["verdict"]
        else f"{now['verdict']} again{held}",
    )  # fmt: skip
    gradients = _table(proof.get("gradients"))
    for name in sorted({*gradients, *now["gradients"]}):
        before, after = _table(gradients.get(name)), now["gradients"].get(name, {})
        parts = [
            _OF_GRADIENTS.get(key, repr(key)) for key in (*_OF_GRADIENTS, *before)
            if key not in before or key not in after or not _alike(before[key], after[key])
        ]  # fmt: skip
        parts = list(dict.fromkeys(parts))
        yield not parts, f"the gradient of {name}{': ' if parts else ''}{', '.join(parts)}"
    for key in sorted((proof.keys() | now.keys()) - {"verdict", "gradients"}):
        same = key in proof and key in now and _alike(proof[key], now[key])
        yield same, f"the {key}" if key in now else _unknown(key)
