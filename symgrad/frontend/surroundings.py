"""What a program asks of the machine, of settings, and of the insides of packages.

In: what the code reads of modules (``torch.cuda.is_available``).  Out: how a verdict treats that.

What the machine and the settings answer is what they answer here, and the verdict prints it.
What tells of the trace itself, or changes a setting, has no answer for all calls.
"""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

ABOUT_THE_TRACE = frozenset(
    ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
     "handle_torch_function", "__torch_function__", "__torch_dispatch__", "_python_dispatch",
     "_disabled_torch_function_impl", "_disabled_torch_dispatch_impl", "SymInt", "SymFloat",
     "SymBool", "extract_stack", "format_stack", "walk_stack", "__array_function__",
     "__array_ufunc__", "__round__", "__copy__")
)  # fmt: skip
"""Names of what torch answers otherwise while a trace is in progress."""

_INSIDES = re.compile(
    r"torch\._C\.(?!(_nn|_linalg|_special|_fft|Size|TensorBase|_TensorBase|Generator|device|dtype|_jit_get_operation|_(to|from)_dlpack)\b)"
    r"|torch\.overrides\.(?!is_tensor_like$|is_tensor_method_or_property$)"
    r"|torch\.autograd\.graph\.|torch\.utils\.(_python_dispatch|_mode_utils|_device)\b"
    r"|torch\._(functorch|guards)\.|builtins\.type$"
)
_CHANGES = re.compile(
    r"torch\.(?!(autograd\.)?(grad_mode\.)?set_grad_enabled$)([\w.]+\.)?(set|use|reset)_\w+$"
    r"|torch\.([\w.]+\.)?(manual_seed\w*|seed|seed_all)$|torch\.autocast_(in|de)crement_nesting$"
    r"|torch\.autograd\.(set_detect_anomaly|detect_anomaly|anomaly_mode\.\w+)$"
)
_ABOUT_NAN = re.compile(r"torch\.([\w.]+\.)?set_anomaly_enabled$")
"""What makes an error of a nan, and changes nothing else."""
_MACHINE = re.compile(
    r"(\w+\.)+(__version__|version\.\w+|git_version)$|\w+\.__version__$"
    r"|torch\.(cuda|mps|xpu|mtia|cpu|accelerator)\.(?!amp\b|nvtx\b|Stream$|Event$|stream$|synchronize$|\w*Tensor$)"
    r"|torch\.backends\.\w+\.(is_available|is_built|version)$|torch\.distributed\.is_\w*available$"
    r"|torch\.(compiled_with_cxx11_abi|is_vulkan_available)$|torch\.__config__\."
    r"|sys\.(version|version_info|hexversion|platform|implementation|byteorder)\b"
    r"|platform\.\w+$|os\.name$"
)
_SETTINGS = re.compile(
    r"torch\.(are|is|get)_(?!tensor$|storage$|floating_point$|complex$|nonzero$|same_size$|"
    r"grad_enabled$|conj$|neg$|distributed$|signed$|inference$|device$|file_path$|device_module$)\w+$"
    r"|torch\.(autograd\.|autograd\.grad_mode\.)?is_(multithreading|view_replay)_enabled$"
    r"|torch\.backends\.|torch\.(compiler|_dynamo|onnx|jit)\.is_\w+$"
    r"|torch\.distributed\.(is|get)_\w+$|torch\.utils\.data\.get_worker_info$"
    r"|jax\.config\.\w+$|warnings\.(filters|showwarning|defaultaction|onceregistry)$|numpy\.(geterr|get_printoptions|getbufsize)$|sys\.(flags|getrecursionlimit)\b"
)
_HARMLESS = re.compile(r"\.(is|are|get)_\w+$")
_SHOWN = (bool, int, str, tuple, type(None))
_LONGEST = 40
_MISSING: Any = object()


@dataclass(frozen=True)
class Read:
    """What a program reads.  ``known``: it is printed; otherwise no verdict is possible."""

    text: str
    known: bool


def read(space: Mapping[str, Any], chain: tuple[str, ...]) -> Read | None:
    """How what is read of a global is treated; None where it is nothing of the kind.

    ``chain``: a name of the module ``space``, and attributes of it.
    """
    if chain == ("__name__",):
        return Read(f"__name__ is {space.get('__name__')!r}, as when it was judged", True)
    path, value = _resolved(space, chain)
    if not path:
        return None
    if _INSIDES.match(path):
        return Read(f"{path} is used, which tells of the trace", False)
    if _ABOUT_NAN.match(path):
        return Read(f"{path} makes no error of a nan", True)
    if _CHANGES.match(path):
        return Read(f"{path} changes a setting that all calls share", False)
    if _MACHINE.match(path):
        return Read(f"{_answer(path, value)} on this machine", True)
    if _SETTINGS.match(path):
        return Read(f"{_answer(path, value)}, as when it was judged", True)
    return None


def _resolved(space: Mapping[str, Any], chain: tuple[str, ...]) -> tuple[str, Any]:
    """The name of what is read, from its module on, and what it is; "" for nothing of a module."""
    value = space.get(chain[0], getattr(builtins, chain[0], _MISSING))
    path = _of_module(value)
    for name in chain[1:]:
        value = _attribute(value, name)
        if isinstance(value, ModuleType):
            path = value.__name__
        elif path:
            path = f"{path}.{name}"
        if value is _MISSING:
            break
    return ("" if isinstance(value, ModuleType) else path), value


def _of_module(value: Any) -> str:
    """Where a global comes from: the name of a module, or of a function of one."""
    if isinstance(value, ModuleType):
        return value.__name__
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    root = module.partition(".")[0] if isinstance(module, str) else ""
    if isinstance(value, type) or root not in ("torch", "platform") or not isinstance(name, str):
        return ""
    return f"{module}.{name}"


def _attribute(value: Any, name: str) -> Any:
    if isinstance(value, ModuleType):
        return getattr(value, name, _MISSING)
    return inspect.getattr_static(value, name, _MISSING) if value is not _MISSING else value


def _answer(path: str, value: Any) -> str:
    """What is read, with its value where that is short."""
    if callable(value) and _HARMLESS.search(path):
        path += "()"
        with suppress(Exception):  # it takes arguments
            value = value()
    shown = isinstance(value, _SHOWN) or type(value).__module__ == "torch"
    brief = repr(value) if shown and not callable(value) else ""
    return f"{path} is {brief if 0 < len(brief) <= _LONGEST else 'what it is'}"
