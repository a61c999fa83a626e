"""Certificates: what the manifest of a package says can be proved again, and is compared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from symgrad import validation
from symgrad.manifest import versions
from symgrad.runtime.digests import SUFFIX
from symgrad.tools.cli import main

pytestmark = pytest.mark.slow  # the package that they look at is built first

OPS = '''
import symgrad as sg


class Scale(sg.Function):
    @staticmethod
    def forward(ctx, x, weight, power=2):
        ctx.save_for_backward(x, weight)
        ctx.power = power
        return x ** power * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        more = ctx.power * x ** (ctx.power - 1)
        return grad * weight * more, (grad * x ** ctx.power).sum(0), None


class Half(sg.Function):
    """Told apart by size: one case for k == 1, one for the others."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.one = x.shape[1] == 1
        return x / 2 + 0 * weight

    @staticmethod
    def backward(ctx, grad):
        return (grad / 2 if ctx.one else 0.5 * grad), None
'''
ASKED = ("--shapes", "n k; k", "--assume", "x=positive")
FIELDS = {"source_sha256", "forward_sha256", "backward_sha256"}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture(scope="module", autouse=True)
def _validated_once() -> Iterator[None]:
    """The same C, or the same wrapper, is validated once for all of these tests."""
    known: dict[tuple[str, str], Any] = {}

    def once(name: str, judge: Callable[..., Any], seen: tuple[Any, ...]) -> Any:
        key = name, seen[0]  # the text, which the other parts are the source of
        if key not in known:
            known[key] = judge(name, *seen)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "_anew", once)
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    (folder / "src").mkdir()
    (folder / "src" / "some_ops.py").write_text(OPS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = run("build", "src/some_ops.py", "-o", "kernels", "--no-compile", *ASKED)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def package(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__py*"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "kernels"


def manifest_of(package: Path) -> Any:
    return json.loads((package / "MANIFEST.json").read_text())


def certificate(package: Path, *more: str | Path) -> Any:
    done = run("verify", "--certificate", package, "--json", *more)
    found = json.loads(done.stdout)
    assert done.exit_code == (0 if found["holds"] else 1)
    return found


def differences(package: Path, name: str = "scale") -> str:
    return "\n".join(certificate(package)["ops"][name]["differs"])


def test_the_manifest_states_what_was_proved(package: Path) -> None:
    manifest = manifest_of(package)
    assert manifest["versions"] == versions()
    libraries = {"symgrad", "sympy", "mpmath", "numpy", "islpy", "pycparser"}
    assert set(versions()) == {*libraries, "python"}
    said = manifest["ops"]["scale"]
    assert said["specs"] == ["n k", "k"]
    assert said["static"] == {}
    assert said["assume"] == {"x": "positive"}
    assert all(len(said[field]) == 64 for field in FIELDS)
    assert said["proof"]["verdict"] == "PROVED"
    for gradient in said["proof"]["gradients"].values():
        assert gradient["hand_written_sha256"] == gradient["true_sha256"]
        (found,) = (one for one in gradient["conditions"] if one["text"] == "x > 0")
        assert (found["code"], found["excepted"]) == ("x > 0", False)
    of_x, of_weight = said["proof"]["gradients"].values()
    assert of_x["true_sha256"] != of_weight["true_sha256"]


def test_it_holds_from_anywhere(
    package: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = certificate(package)
    assert found["holds"]
    assert found["notes"] == []
    assert "PROVED again" in found["ops"]["half"]["agrees"]
    assert "what is emitted now" in found["ops"]["scale"]["agrees"]
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert certificate(package)["holds"]
    assert "the certificate holds" in run("verify", "--certificate", package).output
    away = package.rename(Path("moved").resolve())
    assert "say --root" in differences(away)
    assert certificate(away, "--root", package.parent)["holds"]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("return x ** power * weight", "return x ** power * weight * 1.5", "the traced forward"),
        ("grad * weight * more", "grad * more * weight", "the traced backward"),
        ("grad * weight * more", "2 * grad * weight * more", "PROVED, now REFUTED"),
        ("grad * weight * more", "2 * grad * weight * more",
         "the gradient of x: verdict, normal form of the hand-written side"),
        ("class Scale", "class Renamed", "has no Function 'Scale' any more"),
        ("return x ** power * weight", "return x + power.no", "cannot be proved again"),
    ],
)  # fmt: skip
def test_a_changed_source_is_noticed(package: Path, old: str, new: str, named: str) -> None:
    (source,) = package.parent.glob("src/*_ops.py")
    copy = package.parent / "copy"
    (copy / "src").mkdir(parents=True)
    (copy / "src" / source.name).write_text(OPS.replace(old, new))
    found = certificate(package, "--root", copy)
    assert not found["holds"]
    assert named in "\n".join(found["ops"]["scale"]["differs"])
    assert found["ops"]["half"]["differs"] == []


def test_another_form_of_the_same_gradient_has_the_same_normal_form(package: Path) -> None:
    (source,) = package.parent.glob("src/*_ops.py")
    copy = package.parent / "copy"
    (copy / "src").mkdir(parents=True)
    (copy / "src" / source.name).write_text(OPS.replace("grad * weight * more", "more*weight*grad"))
    found = certificate(package, "--root", copy)["ops"]["scale"]
    assert "the traced backward" in found["differs"]
    again = "PROVED again for all integer power"
    assert {"the gradient of x", again, "the traced forward"} <= set(found["agrees"])


def test_changed_and_missing_files_are_noticed(package: Path) -> None:
    (package / "scale.c").write_text((package / "scale.c").read_text() + "\n")
    (package / "half.py").unlink()
    (package / "_runtime" / "load.py").write_text("")
    assert differences(package) == "scale.c was changed after it was written"
    assert "half.py is missing" in differences(package, "half")
    assert "load.py was changed" in differences(package, "what the ops share")


def test_a_manifest_that_was_changed_with_its_files_is_noticed(package: Path) -> None:
    """The digests agree with the files: what is emitted for the source does not."""
    manifest = manifest_of(package)
    text = (package / "scale.c").read_text().replace("PROVED", "PROVED indeed")
    (package / "scale.c").write_text(text)
    manifest["files"]["scale.c"] = sha256(text.encode()).hexdigest()
    (package / "MANIFEST.json").write_text(json.dumps(manifest))
    assert differences(package) == "what is emitted now: scale.c"


def test_other_versions_are_named_and_do_not_count(package: Path) -> None:
    manifest = manifest_of(package)
    manifest["versions"]["numpy"] = "1.0"
    (package / "MANIFEST.json").write_text(json.dumps(manifest))
    found = certificate(package)
    assert found["holds"]
    assert found["notes"] == [f"written with numpy 1.0, proved again with {versions()['numpy']}"]


def test_versions_alone_do_not_make_a_package_differ(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = Path("src").glob("*_ops.py")
    options = ("--no-compile", "--shapes", "n k; k", "--assume", "x=positive", "--check")
    monkeypatch.setattr("symgrad.manifest.versions", lambda: {**versions(), "numpy": "99.0"})
    assert run("build", source, "-o", package, *options).exit_code == 0
    (package / "scale.c").write_text("changed")
    done = run("build", source, "-o", package, *options)
    assert done.exit_code == 1
    assert "changed" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--certificate", "nowhere"), "has no manifest"),
        (("--certificate", "kernels", "src"), "takes no FILE"),
        ((), "name a FILE"),
    ],
)
def test_wrong_calls(package: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run("verify", *arguments)
    assert done.exit_code == 2
    assert message in done.output


# -- attacks: whatever could be imported or loaded is proved, or refused

SHARED = "what the ops share"
UNLISTED = {
    "a package before a module": "scale/__init__.py",
    "a folder": "data/readme.txt",
    "an extension module": "scale.cpython-311-x86_64-linux-gnu.so",
    "an extension module of any Python": "half.abi3.so",
    "a plain shared object": "half.so",
    "a library for another Python": "_scale.cpython-399-x86_64-linux-gnu.so",
    "a note alone": f"_scale{SUFFIX}.json",
    "paths for site": "evil.pth",
    "compiled Python": "__pycache__/scale.cpython-311.pyc",
    "compiled Python without a source": "other.pyc",
    "compiled Python of the runtime": "_runtime/__pycache__/load.cpython-311.pyc",
    "a package in the runtime": "_runtime/load/__init__.py",
    "a module": "json.py",
    "a hidden file": ".half.py",
}


def test_what_is_not_listed_is_refused(package: Path) -> None:
    for name in UNLISTED.values():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_bytes(b"raise SystemExit('imported')")
    lines = [line for op in certificate(package)["ops"].values() for line in op["differs"]]
    named = {word.rstrip(",") for line in lines for word in line.split()}
    for name in UNLISTED.values():
        first, *rest = name.split("/")
        assert (f"{first}/{rest[0]}" if first == "_runtime" else first) in named, name


def test_links_are_not_followed(package: Path, tmp_path: Path) -> None:
    moved = tmp_path / "scale.py"
    (package / "scale.py").rename(moved)
    (package / "scale.py").symlink_to(moved)
    assert "scale.py is a link" in differences(package, SHARED)
    moved.rename(package.parent / "away")
    (package / "scale.py").unlink()
    (package / "scale.py").mkdir()
    assert "scale.py is a folder of its own" in differences(package, SHARED)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.update(files={}),
        lambda manifest: manifest["files"].pop("scale.c"),
        lambda manifest: manifest["files"].update({"scale.c": None}),
        lambda manifest: manifest["files"].update({"../src/ops.py": "", "/etc/passwd": ""}),
        lambda manifest: manifest.update(ops={}),
        lambda manifest: manifest["ops"].pop("half"),
        lambda manifest: manifest["ops"].update(scale={}),
        lambda manifest: manifest["ops"].update(scale=[1]),
        lambda manifest: manifest["ops"].update({"../half": manifest["ops"].pop("half")}),
        lambda manifest: [manifest["ops"]["scale"].pop(field) for field in FIELDS],
        lambda manifest: manifest["ops"]["scale"].update(source_sha256={}),
        lambda manifest: manifest["ops"]["scale"].update(proof={}),
        lambda manifest: manifest["ops"]["scale"]["proof"].update(gradients={}),
        lambda manifest: manifest["ops"]["scale"]["proof"]["gradients"].update(x={}),
        lambda manifest: manifest["ops"]["scale"]["proof"].pop("domain"),
        lambda manifest: manifest["ops"]["scale"].update(specs=7, assume={"x": 3}),
        lambda manifest: manifest["ops"]["scale"].update(static={"power": "(" * 9999}),
        lambda manifest: manifest["ops"]["scale"].update(specs=[5]),
        lambda manifest: manifest["ops"]["scale"].update(specs=["n k", "k", "k"]),
        lambda manifest: manifest["ops"]["scale"].update(static={"power": "__import__('os')"}),
        lambda manifest: manifest["ops"]["scale"].update(static={"power": "3"}),
        lambda manifest: manifest["ops"]["scale"].update(static=[["power", 2]]),
        lambda manifest: manifest["ops"]["scale"].update(specs="\ud800"),
        lambda manifest: manifest["ops"]["scale"].update(specs=["n \ud800", "k"]),
        lambda manifest: manifest["ops"]["scale"].update(audited=True),
        lambda manifest: manifest["ops"]["scale"]["proof"].update(derived=0),
        lambda manifest: manifest["ops"]["scale"]["proof"].update(verdict="REFUTED"),
        lambda manifest: manifest["ops"]["scale"]["proof"].update(audited=True),
        lambda manifest: manifest["ops"]["scale"]["proof"].update(domain="everywhere"),
        lambda manifest: manifest["ops"]["scale"]["proof"]["gradients"].update(z={}),
        lambda manifest: manifest["ops"]["scale"]["proof"]["gradients"]["x"].update(audited=True),
        lambda manifest: manifest["ops"]["scale"]["proof"]["gradients"]["x"].update(conditions=[]),
        lambda manifest: manifest.update(audited=True),
        lambda manifest: manifest.update(versions=["1.0"]),
        lambda manifest: manifest.update(versions={}),
        lambda manifest: manifest["versions"].update(numpy=2),
        lambda manifest: manifest["versions"].update(numpy="2\nscale: agrees"),
        lambda manifest: manifest["versions"].update(auditor="1.0"),
        lambda manifest: manifest.update(symgrad="99.0"),
        lambda manifest: manifest.pop("versions"),
    ],
)  # fmt: skip
def test_what_a_manifest_leaves_out_does_not_agree(
    package: Path, change: Callable[[Any], None]
) -> None:
    manifest = manifest_of(package)
    change(manifest)
    (package / "MANIFEST.json").write_text(json.dumps(manifest))
    assert not certificate(package)["holds"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"ops": {', '"ops": {}, "ops": {'),
        ('"verdict": "PROVED"', '"verdict": "PROVED", "verdict": "PROVED"'),
        ('"scale.c":', '"scale.c": "", "scale.c":'),
    ],
)
def test_a_manifest_that_says_two_things_is_refused(package: Path, old: str, new: str) -> None:
    manifest = package / "MANIFEST.json"
    text = manifest.read_text()
    assert old in text
    manifest.write_text(text.replace(old, new, 1))
    done = run("verify", "--certificate", package)
    assert (done.exit_code, "twice in one table" in done.output) == (2, True)


def test_what_everybody_may_write_to_is_refused(package: Path) -> None:
    opened = {".": 0o757, "_runtime": 0o757, "_runtime/load.py": 0o646, "scale.c": 0o646}
    for name, mode in opened.items():
        before = (package / name).stat().st_mode
        (package / name).chmod(mode)
        said = "its folder" if name == "." else name
        assert f"{said} may be written to by everybody" in differences(package, SHARED)
        (package / name).chmod(before)
    assert certificate(package)["holds"]


def test_a_runtime_that_was_changed_with_its_digest_is_noticed(package: Path) -> None:
    manifest = manifest_of(package)
    for name in ("__init__.py", "_runtime/load.py"):
        text = (package / name).read_text() + "import evil\n"
        (package / name).write_text(text)
        manifest["files"][name] = sha256(text.encode()).hexdigest()
    (package / "MANIFEST.json").write_text(json.dumps(manifest))
    said = differences(package, SHARED)
    assert "what is emitted now: __init__.py" in said
    assert "what is emitted now: _runtime/load.py" in said


def test_no_source_is_executed_outside_of_the_folder(package: Path, tmp_path: Path) -> None:
    root = package.parent
    ran = root / "ran"
    evil = tmp_path.parent / f"{tmp_path.name}_evil.py"
    evil.write_text(f"open({str(ran)!r}, 'w')\n{OPS}")
    (root / "link.py").symlink_to(evil)
    (package / "inside.py").write_text(evil.read_text())
    for file in (str(evil), f"../{evil.name}", "link.py", "kernels/inside.py", "ops", 7, None):
        manifest = manifest_of(package)
        manifest["ops"]["scale"]["file"] = file
        (package / "MANIFEST.json").write_text(json.dumps(manifest))
        assert "it cannot be proved again: the" in differences(package)
        assert not ran.exists()


def test_shared_objects_are_what_their_sources_build(package: Path) -> None:
    folder = package.with_name("compiled")
    assert run("build", "src/some_ops.py:Half", "-o", folder, *ASKED).exit_code == 0
    library = folder / f"_half{SUFFIX}"
    note = library.with_name(f"{library.name}.json")
    assert "the shared object, built again" in certificate(folder)["ops"]["half"]["agrees"]
    other = library.read_bytes() + b"\0"
    library.write_bytes(other)
    assert "does not tell" in differences(folder, "half")
    library.write_bytes(other[:5000])
    assert "does not tell" in differences(folder, "half")
    library.write_bytes(other)
    stamp = {**json.loads(note.read_text()), "library": sha256(other).hexdigest()}
    note.write_text(json.dumps(stamp))
    assert "is not what the C compiler" in differences(folder, "half")
    note.write_text("{}")
    assert "does not tell" in differences(folder, "half")


def test_the_certificate_of_generated_holds(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.so.json")
    shutil.copytree(root / "generated", tmp_path / "generated", ignore=ignored)
    found = certificate(tmp_path / "generated", "--root", root)
    assert found["holds"], found
