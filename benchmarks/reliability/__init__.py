"""The campaign: what hostile programs, calls and processes do to symgrad, against torch."""

import importlib.util
from pathlib import Path

import symgrad

if importlib.util.find_spec("symgrad.templates") is None:
    # A checkout that is not installed: templates and generated kernels lie at its top.
    symgrad.__path__.append(str(Path(__file__).parents[2]))
