"""Files of declarations, as the command line and pytest read and write them.

In: a file that was named, or the nearest one above each class.  Out: what it declares of a class;
an error for a table that names none; the file with what was found by trying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from symgrad.declarations import (
    OWN_FILE,
    Config,
    Declared,
    appended,
    nearest,
    read,
    table_of,
)
from symgrad.errors import SpecError
from symgrad.frontend.function import Function, class_location
from symgrad.frontend.regions import PLAIN
from symgrad.frontend.request import declared
from symgrad.runtime.package import replace_file
from symgrad.tools.importing import OWN_MODULES
from symgrad.tools.judging import Judged
from symgrad.tools.sources import Source, module_of, sources


class Configured:
    """The declarations for many classes.  ``given``: the one file; None: the nearest of each."""

    def __init__(self, given: Path | None = None, *, read: bool = True) -> None:
        self.given, self.reads = given, read

    def file(self, function: type[Function]) -> Config | None:
        """The file for a class.  Raises SpecError for one that is wrong."""
        location = class_location(function)
        return self._above(Path(location.file) if location else Path.cwd() / "source")

    def _above(self, file: Path) -> Config | None:
        if not self.reads:
            return None
        return nearest(file) if self.given is None else read(self.given)

    def of(self, function: type[Function]) -> Declared | None:
        """What is declared of a class.  Raises SpecError."""
        found = self.file(function)
        return None if found is None else found.of(function)

    def built(
        self, functions: Sequence[type[Function]], told: Callable[[str], object]
    ) -> list[type[Function]]:
        """Those that are not declared to be ignored; ``told`` is called with a line for the others.

        Raises SpecError where there is none.
        """
        chosen = []
        for function in functions:
            declared = self.of(function)
            if declared is None or not declared.ignore:
                chosen.append(function)
            else:
                told(f"not built: {function.__qualname__}: {declared.ignore}")
        if not chosen:
            raise SpecError("there is nothing to build: all Functions are declared to be ignored")
        return chosen

    def check(self, functions: Sequence[type[Function]]) -> None:
        """Raise SpecError for a table that names no class, of these or of the sources beside it."""
        files = {found.path: found for one in functions if (found := self.file(one)) is not None}
        for found in files.values():
            named = {one.key for each in functions if (one := found.of(each)) is not None}
            left = [key for key in found.functions if key not in named]
            if left:
                _check_sources(found, left, [one.__qualname__ for one in functions])

    def check_sources(self, found: Sequence[Source]) -> None:
        """The same for classes that are not imported."""
        files = {file.path: file for one in found if (file := self._above(one.file)) is not None}
        names = [one.name for one in found]
        for file in files.values():
            left = [key for key in file.functions if not any(_is_named(n, key) for n in names)]
            if left:
                _check_sources(file, left, [one.qualname for one in found])

    # -- writing

    def write(self, judged: Sequence[Judged]) -> Iterator[str]:
        """Append what was found by trying to the files; the lines that say what was done."""
        tables: dict[Path, list[str]] = {}
        files: dict[Path, Config] = {}
        for one in judged:
            if one.request is None or one.request.guess is None or one.declared is not None:
                continue
            file = self.file(one.function) or Config(self.given or Path.cwd() / OWN_FILE)
            files[file.path] = file
            tables.setdefault(file.path, []).append(_table(file, one))
        for path, added in tables.items():
            replace_file(path, appended(files[path], added))
            yield f"written: {path}, {len(added)} classes more"
        if not tables:
            yield "nothing was found by trying that is not declared"


def _check_sources(config: Config, left: Sequence[str], known: Sequence[str]) -> None:
    """Raise SpecError for a table that names no class of the folder, or of a package."""
    beside = _sources(str(config.path.parent))
    for key in left:
        found = beside
        if "." in key and not any(_is_named(one, key) for one in beside):
            found = _sources(key.partition(".")[0])
        if not any(_is_named(one, key) for one in found):
            names = [one.rpartition(".")[2] for one in beside]
            raise config.error(key, [*known, *names])


@cache
def _sources(place: str) -> list[str]:
    try:
        return [one.name for one in sources(place)]
    except SpecError:
        return []


def _is_named(name: str, key: str) -> bool:
    return f".{name}".endswith(f".{key}")


def _table(config: Config, one: Judged) -> str:
    """What was found by trying of one class."""
    request = one.request
    assert request is not None
    assert request.guess is not None
    limits: list[str] = []
    if one.report is not None:  # what the verdict is of, and all that it holds for
        every = (request, request.guess.fitting, *request.guess.others)
        judged = (it for it in every if it and it.guess and it.guess.text == one.report.guessed)
        request = next(judged, request)
        limits = [f"if {c.text}" for c in one.report.conditions if c.kind == "shapes"]
    shapes = {arg.name: str(arg.spec) for arg in request.tensors}
    values = dict(request.static)
    chosen = request.guess.values if request.guess is not None else ()
    static = {name: values[name] for name in chosen if name in values}
    own = declared(one.function)
    numbers = {fact.name for fact in request.assumptions if fact.kind == PLAIN}
    facts = {
        fact.name: "constant, number" if fact.name in numbers else "constant"
        for fact in request.assumptions
        if fact.kind == "constant" and fact.name not in own
    }
    comments = [f"found by trying; {one.verdict}", *limits, *_proposals(one)]
    tables = {"shapes": shapes, "static": static, "assume": facts}
    return table_of(config, _key(one), tables, list(dict.fromkeys(comments)))


def _proposals(one: Judged) -> Iterator[str]:
    """What backward is the derivative of, and what declares it."""
    inputs = {} if one.report is None else one.report.inputs
    meant = [found for found in inputs.values() if found.surrogate]
    for found in meant:
        yield f"backward {found.surrogate}: if that is meant, declare it"
    for lines in dict.fromkeys(found.declaration for found in meant if found.declaration):
        yield from lines.splitlines()
        return
    if meant:
        yield f'verdict = "{one.verdict}"'


def _key(one: Judged) -> str:
    """The name of a class with its module, as of the folders in which its file lies."""
    module, location = one.function.__module__, class_location(one.function)
    if module.startswith(OWN_MODULES) and location is not None:
        module, _ = module_of(Path(location.file))
    return f"{module}.{one.name}"
