"""Generated packages: kernels as files that import neither symgrad, sympy nor jinja2.

In: the rendered files of each op and its record for the manifest.  Out: a folder that Python can
import, or its difference from what is there.

A package holds, for each op, ``<op>.py``, ``<op>.c`` and ``<op>.h``; ``_runtime``, a copy of the
modules here that a call needs; ``MANIFEST.json``; and, where they were built, shared objects.
"""

from __future__ import annotations

import difflib
import json
import keyword
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symgrad.errors import BuildError
from symgrad.runtime.cache import BEGUN, beginning, put
from symgrad.runtime.digests import bytes_digest
from symgrad.runtime.libraries import MANIFEST

RUNTIME = "_runtime"
"""The folder of the modules that every op is called through."""
# The modules that generated code needs at run time; those of `COMMON` lie in `symgrad` itself.
RUNTIME_MODULES = (
    *("arguments", "batch_c", "batches", "binding", "blas", "build", "cache"),
    *("compiler", "copies", "copy_c", "digests", "entry", "entry_text", "gufunc"),
    *("libraries", "load", "on_numpy", "owned", "pool", "quick", "residuals", "size_text"),
    *("strict", "support", "team_c", "threads", "trusted", "values", "workspace"),
)
COMMON = ("abi", "errors", "forks", "plain_values")
# What hands the ops to other frameworks, which are imported when it is.
EXPORT = ("direct", "jax", "table", "torch")
# What `__init__.py` gives under these names, whatever ops are called.
_OWN = ("export_jax", "export_torch", "get_num_threads", "set_num_threads")
_INIT = '"""What the kernels of this package are called through; copied from symgrad."""\n'
_IMPORTS = (
    (re.compile(r"^( *)from symgrad\.runtime import ", re.MULTILINE), r"\1from . import "),
    (re.compile(r"^( *)from symgrad\.runtime\.", re.MULTILINE), r"\1from ."),
    (re.compile(r"^( *)from symgrad\.export\.", re.MULTILINE), r"\1from .export_"),
    (re.compile(rf"^( *)from symgrad\.({'|'.join(COMMON)}) import ", re.M), r"\1from .\2 import "),
    (re.compile(r"^from symgrad import ", re.MULTILINE), "from . import "),
)


@dataclass(frozen=True)
class PackagedOp:
    """One op of a package.

    ``stem`` is the module's name; ``wrapper`` its text, rendered for ``"._runtime"``; ``texts``
    the C files and the header; ``record`` what the manifest says of it (the source's digest, the
    verdict ...), made of plain JSON values.
    """

    stem: str
    wrapper: str
    texts: Mapping[str, str]
    record: Mapping[str, Any]


def runtime_files() -> dict[str, str]:
    """The copied modules by their path in a package."""
    here = Path(__file__).parent
    found = {f"{RUNTIME}/__init__.py": _INIT}
    sources = {name: here / f"{name}.py" for name in RUNTIME_MODULES}
    sources |= {name: here.parent / f"{name}.py" for name in COMMON}
    sources |= {f"export_{name}": here.parent / "export" / f"{name}.py" for name in EXPORT}
    for name, path in sorted(sources.items()):
        text = path.read_text(encoding="utf-8")
        for pattern, replacement in _IMPORTS:
            text = pattern.sub(replacement, text)
        found[f"{RUNTIME}/{name}.py"] = text
    return found


def shared_files(init: str) -> dict[str, str]:
    """What a package holds besides its ops, the headers that these share, and the manifest."""
    return {"__init__.py": init, "py.typed": "", **runtime_files()}


def package_files(
    ops: Sequence[PackagedOp], init: str, manifest: Mapping[str, Any]
) -> dict[str, str]:
    """Every text of a package by its path; the same bytes for the same input.

    ``init`` is the text of ``__init__.py``; ``manifest`` holds the facts about the whole package
    (versions ...), to which the ops' records and the digests of the files are added.  Raises
    BuildError for a module name that Python cannot import, and for one that two ops want.
    """
    files = shared_files(init)
    for op in ops:
        check_stem(op.stem)
        for name, text in ((f"{op.stem}.py", op.wrapper), *sorted(op.texts.items())):
            shared = files.get(name) == text and not name.endswith(".py")
            if name in files and not shared:
                raise BuildError(f"two ops want the file {name}", hint="rename one of them")
            files[name] = text
    for op in ops:
        if f"_{op.stem}.py" in files:
            raise BuildError(
                f"the library of {op.stem} would be imported in the place of _{op.stem}.py, which"
                " is another op's",
                hint="rename one of them",
            )
    facts = {
        **manifest,
        "ops": {op.stem: dict(op.record) for op in ops},
        "files": {name: text_digest(text) for name, text in files.items()},
    }
    text = json.dumps(facts, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    # A file name that is no text is written as JSON escapes it.
    files[MANIFEST] = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return dict(sorted(files.items()))


def check_stem(stem: str) -> None:
    """Can it be the name of a module?  Raises BuildError."""
    if not stem.isidentifier() or keyword.iskeyword(stem) or stem.startswith("_"):
        raise BuildError(f"{stem!r} cannot be the name of a module", hint="rename the Function")
    if stem in _OWN:
        raise BuildError(f"every package has a {stem} of its own", hint="rename the Function")


def text_digest(text: str) -> str:
    """The SHA-256 of a text, as manifests state it."""
    return bytes_digest(text.encode("utf-8", "surrogatepass"))


def difference(folder: Path, files: Mapping[str, str]) -> str:
    """What writing ``files`` would change, as a unified diff; empty where nothing would."""
    parts: list[str] = []
    for name in sorted({*files, *_stale(folder, files)}):
        before, after = _read(folder / name), files.get(name)
        if before == after:
            continue
        parts += difflib.unified_diff(
            (before or "").splitlines(keepends=True),
            (after or "").splitlines(keepends=True),
            f"{folder.name}/{name}" if before is not None else "/dev/null",
            f"{folder.name}/{name}" if after is not None else "/dev/null",
        )
        if not (before or after):
            what = "is missing" if before is None else "is left over"
            parts.append(f"{folder.name}/{name} {what}\n")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in parts)


def write_package(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write ``files`` into ``folder``; return the paths that changed.

    A new folder appears complete or not at all.  In an existing one each file is replaced
    atomically; files that an earlier manifest lists and this one does not are deleted, all others
    stay.  The manifest comes last, so that a build that ends before leaves nothing unlisted.
    Raises BuildError where a file is in the way that symgrad did not write, or where the folder
    cannot be written.
    """
    try:
        if not folder.exists():
            return _write_new(folder, files)
        _check_ours(folder, files)
        leftovers = _stale(folder, files)
        changed = [name for name in sorted(files) if _read(folder / name) != files[name]]
        if changed:
            replace_file(folder / MANIFEST, _interim(folder, files))
        for name in changed:
            if name != MANIFEST:
                replace_file(folder / name, files[name])
        for name in leftovers:
            (folder / name).unlink(missing_ok=True)
        if changed:
            replace_file(folder / MANIFEST, files[MANIFEST])
        return [folder / name for name in (*changed, *leftovers)]
    except OSError as error:
        raise BuildError(
            f"{folder} cannot be written: {error.strerror or error}",
            hint="choose a folder that can be written",
        ) from error


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        return f"<{path.name} is not text>"


def _listed(folder: Path) -> list[str]:
    """The files that the manifest in ``folder`` lists, itself included.

    A damaged manifest lists itself if the runtime lies beside it.  One that somebody else wrote
    lists nothing.
    """
    try:
        facts = json.loads(_read(folder / MANIFEST) or "")
        if isinstance(facts["ops"], dict) and isinstance(facts["files"], dict):
            return [MANIFEST, *(name for name in facts["files"] if _is_inside(name))]
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return [MANIFEST] if _read(folder / RUNTIME / "__init__.py") == _INIT else []


def _is_inside(name: object) -> bool:
    """No path out of the package: a manifest must not name what is not its own."""
    return isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts


def _stale(folder: Path, files: Mapping[str, str]) -> list[str]:
    """What is to be deleted: files that no op has any more, and what killed builds left."""
    before = [n for n in _listed(folder) if n not in files and (folder / n).exists()]
    return before + [str(path.relative_to(folder)) for path in abandoned(folder, files)]


def _check_ours(folder: Path, files: Mapping[str, str]) -> None:
    ours = set(_listed(folder))
    for name, text in files.items():
        there = _read(folder / name)
        if there not in (None, text) and name not in ours and (there or "").strip():
            raise BuildError(
                f"{folder / name} is in the way, and was not written by symgrad",
                hint="choose another folder, or move the file",
            )


def _interim(folder: Path, files: Mapping[str, str]) -> str:
    """A manifest that lists what is there and what will be: killed now, all of it stays ours."""
    facts = json.loads(files[MANIFEST])
    facts["files"] = {**dict.fromkeys(_listed(folder)[1:], ""), **facts["files"]}
    return json.dumps(facts, indent=2, sort_keys=True) + "\n"


def _write_new(folder: Path, files: Mapping[str, str]) -> list[Path]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = beginning(folder)
    try:
        beside.mkdir(mode=0o700)
        for name, text in files.items():
            (beside / name).parent.mkdir(exist_ok=True)
            (beside / name).write_bytes(text.encode("utf-8"))
        beside.chmod(0o755)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return [folder / name for name in files]


def replace_file(path: Path, text: str) -> None:
    """Write a file atomically: readers find the old text or the new one.  Raises OSError."""

    def write(beside: Path) -> None:
        with beside.open("xb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        beside.chmod(0o644)

    path.parent.mkdir(parents=True, exist_ok=True)
    put(path, write)


def abandoned(folder: Path, names: Iterable[str]) -> list[Path]:
    """What builds that were killed have left where these files are written."""
    parents = sorted({(folder / name).parent for name in names})
    return [
        path for parent in parents for path in sorted(parent.glob(".*"))
        if BEGUN.fullmatch(path.name) and path.is_file()
    ]  # fmt: skip
