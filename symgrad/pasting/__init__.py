"""Repairs pasted into the user's text: what can be named there, trying them, the diff."""
