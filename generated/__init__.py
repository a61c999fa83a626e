"""Kernels written by ``python -m symgrad regen``: nothing here is edited by hand."""
