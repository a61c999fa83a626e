"""Modules: layers with parameters, and containers of them.

In: nothing.  Out: the modules of ``symgrad.nn``.
"""
