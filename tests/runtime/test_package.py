"""Generated packages: the same bytes each time, nothing half-written, nothing of symgrad needed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from symgrad.codegen.wrapper import render_package
from symgrad.errors import BuildError
from symgrad.runtime import build, package
from symgrad.runtime.cache import beginning
from symgrad.runtime.compiler import find_compiler
from symgrad.runtime.contents import stale
from symgrad.runtime.libraries import build_package
from symgrad.runtime.package import (
    PackagedOp,
    difference,
    package_files,
    replace_file,
    write_package,
)
from tests.runtime import scripts
from tests.runtime.examples import ALL, MATMUL, SOFTPLUS, Example


def files_of(*examples: Example, version: str = "1.2.3") -> dict[str, str]:
    ops = [
        PackagedOp(one.stem, one.wrapper("._runtime"), one.texts, {"verdict": "PROVED"})
        for one in examples
    ]
    return package_files(ops, render_package([op.stem for op in ops]), {"symgrad": version})


def tree(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "kernels"
    write_package(folder, files_of(*ALL))
    build_package(folder, [one.stem for one in ALL], portable=False)
    return folder


def test_what_is_in_it(tmp_path: Path) -> None:
    files = files_of(*ALL)
    folder = tmp_path / "deep" / "kernels"
    write_package(folder, files)
    assert tree(folder) == files
    for one in ALL:
        assert {f"{one.stem}.py", f"{one.stem}.c", f"{one.stem}.h"} <= files.keys()
    manifest = json.loads(files["MANIFEST.json"])
    assert manifest["symgrad"] == "1.2.3"
    assert manifest["ops"]["softplus"] == {"verdict": "PROVED"}
    assert manifest["files"].keys() == files.keys() - {"MANIFEST.json"}
    assert str(tmp_path) not in "".join(files.values())


def test_dir_shows_the_ops_and_no_import_of_the_package_s_own(tmp_path: Path) -> None:
    folder = tmp_path / "shown_kernels"
    write_package(folder, files_of(*ALL))
    source = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import shown_kernels\n"
    names: dict[str, list[str]] = {}
    exec(f"{source}names['found'] = dir(shown_kernels)", {"names": names})
    public = [name for name in names["found"] if not name.startswith("_")]
    assert public == sorted([*(one.stem for one in ALL), "get_num_threads", "set_num_threads"])


def test_nothing_imports_symgrad() -> None:
    for name, text in files_of(*ALL).items():
        lines = [line for line in text.splitlines() if "import" in line.split("#")[0].split()[:3]]
        for line in lines:
            words = line.split()
            assert words[0] != "import" or words[1] not in ("symgrad", "sympy", "jinja2"), name
            assert not line.lstrip().startswith("from symgrad"), (name, line)


def test_same_text_as_in_memory() -> None:
    """Only the lines that import differ between a package and `sg.compile`."""
    for one in ALL:
        pairs = zip(one.wrapper().splitlines(), one.wrapper("._runtime").splitlines(), strict=True)
        different = [left for left, right in pairs if left != right]
        assert all(
            line.startswith(("from symgrad.runtime.", "from symgrad.abi ")) for line in different
        )
        assert different


def test_writing_again(tmp_path: Path) -> None:
    folder, files = tmp_path / "kernels", files_of(SOFTPLUS, MATMUL)
    assert difference(folder, files) != ""
    write_package(folder, files)
    assert difference(folder, files) == ""
    assert write_package(folder, files) == []
    (folder / "mine.py").write_text("mine = 1\n", encoding="utf-8")
    fewer = files_of(SOFTPLUS, version="1.2.4")
    said = difference(folder, fewer)
    assert "--- kernels/matmul.c\n+++ /dev/null\n" in said
    assert '-  "symgrad": "1.2.3"\n+  "symgrad": "1.2.4"\n' in said
    changed = {path.name for path in write_package(folder, fewer)}
    assert changed == {"__init__.py", "MANIFEST.json", "matmul.c", "matmul.h", "matmul.py"}
    assert difference(folder, fewer) == ""
    assert tree(folder) == {**fewer, "mine.py": "mine = 1\n"}


def test_a_file_that_was_changed_or_lost(tmp_path: Path) -> None:
    folder, files = tmp_path / "kernels", files_of(SOFTPLUS)
    write_package(folder, files)
    (folder / "softplus.c").write_text("/* mine */\n", encoding="utf-8")
    (folder / "py.typed").unlink()
    said = difference(folder, files)
    assert "-/* mine */\n" in said
    assert "kernels/py.typed is missing\n" in said
    write_package(folder, files)
    assert difference(folder, files) == ""


def test_what_symgrad_did_not_write_is_not_overwritten(tmp_path: Path) -> None:
    """Here: the very file that the user's Function was read from."""
    (tmp_path / "softplus.py").write_text("class Softplus: ...\n", encoding="utf-8")
    with pytest.raises(BuildError, match=r"softplus\.py is in the way"):
        write_package(tmp_path, files_of(SOFTPLUS))
    assert tree(tmp_path) == {"softplus.py": "class Softplus: ...\n"}


@pytest.mark.parametrize(
    "mine", ["mine\n", "[]", '{"files": ["a.js"], "ops": {}}', '{"files": {}}', "[" * 100_000]
)
def test_a_manifest_that_symgrad_did_not_write(tmp_path: Path, mine: str) -> None:
    (tmp_path / "MANIFEST.json").write_text(mine, encoding="utf-8")
    with pytest.raises(BuildError, match=r"MANIFEST\.json is in the way"):
        write_package(tmp_path, files_of(SOFTPLUS))
    assert tree(tmp_path) == {"MANIFEST.json": mine}


def test_a_damaged_manifest_is_written_again(tmp_path: Path) -> None:
    files = files_of(SOFTPLUS)
    write_package(tmp_path / "kernels", files)
    (tmp_path / "kernels" / "MANIFEST.json").write_text("<<<<<<< ours\n", encoding="utf-8")
    write_package(tmp_path / "kernels", files)
    assert tree(tmp_path / "kernels") == files


def test_an_empty_module_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    write_package(tmp_path, files_of(SOFTPLUS))
    assert tree(tmp_path) == files_of(SOFTPLUS)


def test_a_new_folder_appears_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = Path.write_bytes, [0]

    def stop(path: Path, data: bytes) -> int:
        count[0] += 1
        if count[0] == 9:
            raise OSError(28, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", stop)
    with pytest.raises(BuildError, match="No space left"):
        write_package(tmp_path / "kernels", files_of(SOFTPLUS))
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_ever_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kernels"
    write_package(folder, files_of(SOFTPLUS))
    before = tree(folder)
    real, count = Path.replace, [0]

    def stop(path: Path, target: Path) -> Path:
        count[0] += 1
        if count[0] == 5:
            raise OSError(28, "No space left on device")
        return real(path, target)

    monkeypatch.setattr(Path, "replace", stop)
    after = files_of(SOFTPLUS, MATMUL)
    with pytest.raises(BuildError, match="No space left"):
        write_package(folder, after)
    for name, text in tree(folder).items():
        assert text in (before.get(name), after.get(name))
    monkeypatch.undo()
    later = files_of(SOFTPLUS, MATMUL, version="1.2.4")
    write_package(folder, later)
    assert tree(folder) == later


@pytest.mark.parametrize("at", ["open", "chmod", "replace"])
@pytest.mark.parametrize("before", [True, False])
def test_nothing_is_left_when_writing_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, before: bool
) -> None:
    """Ctrl-C before a step, or right behind it, ``open`` of a new file among them."""
    folder = tmp_path / "kernels"
    write_package(folder, files_of(SOFTPLUS))
    real = getattr(Path, at)

    def stop(path: Path, *given: Any, **named: Any) -> Any:
        if not path.name.startswith("."):
            return real(path, *given, **named)
        if not before:
            made = real(path, *given, **named)
            if at == "open":
                made.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, at, stop)
    with pytest.raises(KeyboardInterrupt):
        write_package(folder, files_of(MATMUL))
    monkeypatch.undo()
    assert {path.name[0] for path in folder.rglob("*")}.isdisjoint(".")
    write_package(folder, files_of(MATMUL))
    assert tree(folder) == files_of(MATMUL)


def test_wherever_an_upgrade_ends_the_next_build_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each file that is replaced or deleted, in turn."""
    before, after = files_of(SOFTPLUS, MATMUL), files_of(SOFTPLUS, version="1.2.4")
    left = [0]

    def counting(real: Any) -> Any:
        def call(path: Path, *given: Any, **named: Any) -> Any:
            names = {path.name, *(one.name for one in given)}
            if any(not name.startswith(".") for name in names):
                left[0] -= 1
                if not left[0]:
                    raise KeyboardInterrupt
            return real(path, *given, **named)

        return call

    for steps in range(1, 100):
        folder = tmp_path / str(steps)
        write_package(folder, before)
        with monkeypatch.context() as patch:
            left[0] = steps
            patch.setattr(Path, "replace", counting(Path.replace))
            patch.setattr(Path, "unlink", counting(Path.unlink))
            with suppress(KeyboardInterrupt):
                write_package(folder, after)
        whole = left[0] > 0
        write_package(folder, after)
        assert tree(folder) == after
        if whole:
            break
    assert 4 < steps < 99


def test_the_manifest_is_whole_where_another_file_was_changed(tmp_path: Path) -> None:
    """With letters that JSON may write in two ways."""
    files = package_files([PackagedOp("plain", "", {}, {"file": "größe.py"})], "", {})
    write_package(tmp_path / "kernels", files)
    (tmp_path / "kernels" / "plain.py").write_text("mine = 1\n", encoding="utf-8")
    write_package(tmp_path / "kernels", files)
    assert tree(tmp_path / "kernels") == files


def test_what_a_killed_build_has_left_is_deleted(tmp_path: Path) -> None:
    folder, files = tmp_path / "kernels", files_of(SOFTPLUS)
    write_package(folder, files)
    (folder / ".new-mine").write_text("mine", encoding="utf-8")
    for name in ("MANIFEST.json", "_softplus.abi3.so", "_runtime/load.py"):
        beginning(folder / name).write_text("half", encoding="utf-8")
    assert difference(folder, files).count("+++ /dev/null") == 3
    assert len(write_package(folder, files)) == 3
    assert difference(folder, files) == ""
    assert tree(folder) == {**files, ".new-mine": "mine"}


def test_a_file_that_another_build_deletes_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, times = Path.replace, [0]

    def late(path: Path, target: Path) -> Path:
        times[0] += 1
        if times[0] == 1:
            path.unlink()
        return real(path, target)

    monkeypatch.setattr(Path, "replace", late)
    replace_file(tmp_path / "text", "whole")
    assert tree(tmp_path) == {"text": "whole"}


def test_a_manifest_does_not_reach_outside(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    write_package(folder, files_of(SOFTPLUS))
    (tmp_path / "precious").write_text("keep", encoding="utf-8")
    manifest = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))
    manifest["files"] |= {"../precious": "", str(tmp_path / "precious"): ""}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")
    write_package(folder, files_of(MATMUL))
    assert (tmp_path / "precious").exists()
    assert not (folder / "softplus.c").exists()


@pytest.mark.parametrize("stem", ["class", "not a name", "_hidden", "1st", ""])
def test_names_that_cannot_be_imported(stem: str) -> None:
    with pytest.raises(BuildError, match="cannot be the name of a module"):
        package_files([PackagedOp(stem, "", {}, {})], "", {})


def test_two_ops_of_one_name() -> None:
    op = PackagedOp("softplus", SOFTPLUS.wrapper("._runtime"), SOFTPLUS.texts, {})
    with pytest.raises(BuildError, match=r"two ops want the file softplus\.py"):
        package_files([op, op], "", {})


@pytest.mark.parametrize("turned", [False, True])
def test_a_library_is_not_imported_for_the_programs_of_another_op(turned: bool) -> None:
    """``_foo_numpy.abi3.so`` is the library of foo_numpy; Python takes it before a ``.py``."""
    ops = [PackagedOp("foo", "", {"_foo_numpy.py": ""}, {}), PackagedOp("foo_numpy", "", {}, {})]
    with pytest.raises(BuildError, match=r"the library of foo_numpy .* _foo_numpy\.py") as error:
        package_files(ops[::-1] if turned else ops, "", {})
    assert error.value.hint == "rename one of them"
    assert package_files([PackagedOp("foo", "", {"_foo_numpy.py": ""}, {})], "", {})


@pytest.mark.parametrize("stem", ["export_torch", "get_num_threads", "set_num_threads"])
def test_names_that_a_package_has_itself(stem: str) -> None:
    with pytest.raises(BuildError, match=f"every package has a {stem} of its own"):
        package_files([PackagedOp(stem, "", {}, {})], "", {})


@pytest.mark.slow
def test_the_same_bytes_under_any_hash_seed() -> None:
    script = """
import hashlib
from tests.runtime.test_package import files_of
from tests.runtime.examples import ALL
print(hashlib.sha256(repr(files_of(*ALL)).encode()).hexdigest())
"""
    assert len({scripts.run(script, PYTHONHASHSEED=seed) for seed in ("0", "1", "77")}) == 1


LISTED = "import gated, matmul, pick, softplus"
USE = """
import sys
for name in ("symgrad", "sympy", "jinja2", *sys.argv[2].split()):
    sys.modules[name] = None
sys.path[:] = [path for path in sys.path if path]
sys.path.insert(0, sys.argv[1])
import numpy
import kernels
from kernels import gated, matmul, pick, softplus
x, w = numpy.arange(6.0).reshape(2, 3), numpy.ones((3, 4))
y, residuals = matmul.forward(x, w)
assert (y == x @ w).all()
gx, gw = matmul.backward(residuals, y)
assert (gx == y @ w.T).all() and (gw == x.T @ y).all()
assert kernels.matmul is matmul and "softplus" in dir(kernels)
kernels.set_num_threads(1)
assert kernels.get_num_threads() == 1
y, residuals = matmul.forward(numpy.stack([x, x]), w)
gx, gw = matmul.backward(residuals, y)
assert (y == x @ w).all() and (gx == y @ w.T).all() and (gw == 2 * x.T @ y[0]).all()
product = kernels.gufunc(matmul)
assert product.signature == "(n,k),(k,m)->(n,m)"
assert (product(x.T, w, axes=[(1, 0), (0, 1), (1, 0)]) == (x @ w).T).all()
z = softplus.inference(numpy.zeros((2, 2), "f4").T)
assert abs(z - numpy.log(2)).max() < 1e-6
try:
    softplus.inference([1.0])
except TypeError as error:
    assert "Softplus: input x is a list" in str(error), error
else:
    raise AssertionError
print(matmul._library.path)
"""
BUILDERS = "cffi pycparser setuptools distutils filelock platformdirs"


def test_a_built_package_needs_no_compiler(built: Path) -> None:
    said = scripts.run(
        USE, str(built.parent), BUILDERS, CC="/nonexistent", SYMGRAD_CACHE_DIR="/nonexistent"
    )
    assert Path(said.strip()).parent == built


@pytest.mark.slow
def test_a_package_without_libraries_is_compiled_once(tmp_path: Path) -> None:
    write_package(tmp_path / "kernels", files_of(*ALL))
    variables = {"SYMGRAD_CACHE_DIR": str(tmp_path / "cache")}
    first = scripts.run(USE, str(tmp_path), "", **variables)
    assert str(tmp_path / "cache") in first
    again = scripts.run(USE, str(tmp_path), "cffi", **variables)
    assert first == again
    assert not list((tmp_path / "kernels").glob("*.so"))


def test_neither_library_nor_compiler(tmp_path: Path) -> None:
    write_package(tmp_path / "kernels", files_of(*ALL))
    script = """
import sys
sys.path.insert(0, sys.argv[1])
import kernels
assert kernels.__all__
try:
    import kernels.softplus
except ImportError as error:
    print(error)
"""
    said = scripts.run(script, str(tmp_path), CC="/nonexistent", SYMGRAD_CACHE_DIR=str(tmp_path))
    assert "Softplus: the library _softplus.abi3.so is not there, and none can be compiled" in said
    assert "the C compiler /nonexistent cannot be run" in said
    assert "symgrad build" in said


@pytest.mark.skipif(shutil.which("strip") is None, reason="there is no strip here")
def test_a_library_that_a_tool_has_rewritten(built: Path, tmp_path: Path) -> None:
    """As strip and auditwheel do: it is loaded, but for a part of it, or one of another source."""
    from symgrad.runtime.load import _is_fresh

    (library,) = built.glob("_softplus.*so")
    copied = tmp_path / library.name
    shutil.copy(library, copied)
    shutil.copy(library.with_name(f"{library.name}.json"), tmp_path)
    subprocess.run(["strip", "--strip-unneeded", copied], check=True)
    assert copied.read_bytes() != library.read_bytes()
    note = json.loads(library.with_name(f"{library.name}.json").read_text(encoding="utf-8"))
    assert _is_fresh(copied, note["source"])
    whole = copied.read_bytes()
    copied.write_bytes(whole[: len(whole) // 2])
    assert not _is_fresh(copied, note["source"])
    assert not _is_fresh(copied, bytes(32).hex())


def test_a_library_with_another_byte_of_code_is_not_taken(built: Path, tmp_path: Path) -> None:
    from symgrad.runtime.load import _is_fresh

    (library,) = built.glob("_softplus.*so")
    copied = tmp_path / library.name
    shutil.copy(library.with_name(f"{library.name}.json"), tmp_path)
    note = json.loads(copied.with_name(f"{library.name}.json").read_text(encoding="utf-8"))
    whole = library.read_bytes()
    place = whole.find(b"\xf3\x0f\x1e\xfa")  # where functions begin on x86-64
    if place < 0:
        pytest.skip("another processor")
    copied.write_bytes(whole[:place] + b"\xf2" + whole[place + 1 :])
    assert not _is_fresh(copied, note["source"])


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["text", "cut", "no stamp"])
def test_a_library_that_does_not_fit_is_not_loaded(tmp_path: Path, damage: str) -> None:
    """Built from another text, cut short, or of unknown origin: the cache serves instead."""
    folder = tmp_path / "kernels"
    write_package(folder, files_of(MATMUL))
    (library,) = build_package(folder, ["matmul"], portable=False)
    if damage == "text":
        c = folder / "matmul.c"
        c.write_text(c.read_text(encoding="utf-8") + "/* more */\n", encoding="utf-8")
    elif damage == "cut":
        library.write_bytes(library.read_bytes()[:5000])
    else:
        library.with_name(f"{library.name}.json").unlink()
    script = USE.partition("z = softplus")[0].replace(
        "import gated, matmul, pick, softplus", "import matmul"
    )
    script = script.replace(' and "softplus" in dir(kernels)', "") + "print(matmul._library.path)\n"
    said = scripts.run(script, str(tmp_path), "", SYMGRAD_CACHE_DIR=str(tmp_path / "cache"))
    assert str(tmp_path / "cache") in said


@pytest.mark.parametrize("part", [0, 5, 6, 30, 64, 0.5, 0.99])
def test_a_library_that_is_cut_short_is_no_more_what_was_built(
    built: Path, tmp_path: Path, part: float
) -> None:
    """Wherever it is cut: before, within or behind the tables of an ELF file."""
    for path in (*built.glob("_softplus*.so"), *built.glob("_softplus*.json")):
        shutil.copy(path, tmp_path)
    (library,) = tmp_path.glob("_softplus*.so")
    data = library.read_bytes()
    library.write_bytes(data[: part if isinstance(part, int) else int(len(data) * part)])
    said = stale(tmp_path, SOFTPLUS.record, SOFTPLUS.texts)
    assert said == f"{library.name} was changed, or was built from other sources"


DAMAGES: dict[str, tuple[Callable[[Path], object], ...]] = {
    "was changed": (lambda library: library.write_bytes(library.read_bytes()[:-1] + b"!"),),
    "or was built": (lambda library: library.write_bytes(b""),),
    "is no file": (Path.unlink, Path.mkdir),
    "_softplus.* is no file": (Path.unlink, lambda library: os.symlink(library, library)),
    "json cannot be read": (lambda library: _note(library).write_bytes(b"\xff"),),
    "softplus.*json cannot": (lambda library: os.unlink(_note(library)),),
}


def _note(library: Path) -> Path:
    return library.with_name(f"{library.name}.json")


@pytest.mark.parametrize("said", DAMAGES)
def test_what_is_said_of_a_library_that_is_no_more_what_was_built(
    built: Path, tmp_path: Path, said: str
) -> None:
    folder = tmp_path / "kernels"
    shutil.copytree(built, folder)
    assert stale(folder, SOFTPLUS.record, SOFTPLUS.texts) == ""
    other = {name: f"{text} " for name, text in SOFTPLUS.texts.items()}
    assert "built from other sources" in stale(folder, SOFTPLUS.record, other)
    (library,) = folder.glob("_softplus*.so")
    for damage in DAMAGES[said]:
        damage(library)
    assert re.search(said, stale(folder, SOFTPLUS.record, SOFTPLUS.texts))


def test_import_is_light(built: Path) -> None:
    """A count, not a time: what is imported beyond numpy stays small."""
    script = """
import sys
import numpy
before = set(sys.modules)
sys.path.insert(0, sys.argv[1])
import kernels.softplus
extra = {name.split(".")[0] for name in set(sys.modules) - before}
print(*sorted(extra))
"""
    extra = scripts.run(script, str(built.parent)).split()
    assert "kernels" in extra
    heavy = {"cffi", "filelock", "platformdirs", "pycparser", "setuptools", "sympy", "symgrad"}
    assert heavy.isdisjoint(extra)


def test_runtime_modules_are_complete() -> None:
    """What the copied modules import from each other is copied too."""
    names = {Path(name).stem for name in package.runtime_files()}
    for name, text in package.runtime_files().items():
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["from"] and words[1].startswith("."):
                module = words[1][1:] or words[3]
                assert module in names, (name, line)


def test_residuals_can_be_pickled(built: Path) -> None:
    script = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
import numpy
from kernels import softplus
y, residuals = softplus.forward(numpy.ones((2, 3), "f4"))
again = pickle.loads(pickle.dumps(residuals))
assert type(again) is softplus.Residuals
assert (softplus.backward(again, y)[0] == softplus.backward(residuals, y)[0]).all()
"""
    scripts.run(script, str(built.parent))


def test_a_library_without_its_blas(built: Path) -> None:
    """What is said to be missing is the BLAS, not the library, nor a compiler."""
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if "openblas" in name else find(name, *rest)
import kernels.softplus
try:
    import kernels.matmul
except ImportError as error:
    print(error)
"""
    said = scripts.run(script, str(built.parent), CC="/nonexistent", SYMGRAD_BLAS="")
    assert said.startswith("Matmul: the library _matmul.abi3.so is there, but no BLAS")
    assert "pip install scipy-openblas32" in said


SYMBOLS = re.compile(r"\bU (_?Py\w+)")
STABLE = {  # with a name that looks private
    "_Py_Dealloc", "_Py_FalseStruct", "_Py_NoneStruct", "_Py_TrueStruct",
}  # fmt: skip


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm here")
def test_later_versions_of_python_load_it(built: Path) -> None:
    """CPython's stable interface as of 3.10 has all that a library takes from Python."""
    for library in built.glob("*.abi3.so"):
        said = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
        taken = set(SYMBOLS.findall(said.stdout))
        assert taken, library
        assert {name for name in taken if name.startswith("_Py")} <= STABLE
    assert len(list(built.glob("*.abi3.so"))) == len(ALL)


BUILD = """
import sys
from pathlib import Path
from tests.runtime.examples import MATMUL, SOFTPLUS
from tests.runtime.test_package import files_of
from symgrad.runtime.contents import stale
from symgrad.runtime.libraries import build_package
from symgrad.runtime.package import write_package
folder = Path(sys.argv[1])
write_package(folder, files_of(SOFTPLUS, MATMUL))
build_package(folder, ["softplus", "matmul"])
"""


@pytest.mark.slow
def test_built_twice_with_the_same_bytes(tmp_path: Path) -> None:
    """In other folders, under another hash seed, locale and umask, with the compiler's ``-g``."""
    debugging, found = f"{find_compiler().command[0]} -g", []
    for name, seed, language in (("one", "1", "C"), ("another/deep", "2", "de_DE.UTF-8")):
        home = tmp_path / name
        (home / "tmp").mkdir(parents=True)
        scripts.run(
            BUILD, str(home / "kernels"), PYTHONHASHSEED=seed, LC_ALL=language,
            TMPDIR=str(home / "tmp"), SYMGRAD_CACHE_DIR=str(home / "cache"), CC=debugging,
        )  # fmt: skip
        folder = home / "kernels"
        files = [path for path in folder.rglob("*") if path.is_file()]
        found.append({str(path.relative_to(folder)): path.read_bytes() for path in files})
    assert found[0] == found[1]
    assert len([name for name in found[0] if name.endswith(".so")]) == 2


def test_what_was_built_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second package of the same op starts no compiler."""
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        write_package(folder, files_of(SOFTPLUS))
    (made,) = build_package(first, ["softplus"])

    def refuse(*_: object) -> None:
        raise AssertionError("a compiler was started")

    monkeypatch.setattr(build, "_run_all", refuse)
    (again,) = build_package(second, ["softplus"])
    assert again.read_bytes() == made.read_bytes()
    assert tree_of_stamps(first) == tree_of_stamps(second)


def tree_of_stamps(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.so.json")}
