"""Derivatives of functions: ``sg.grad``, ``sg.vjp``, ``sg.jvp``, Jacobians, ``gradcheck``."""
