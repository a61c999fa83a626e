"""The Python wrapper of an op."""
