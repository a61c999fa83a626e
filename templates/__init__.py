"""The templates of the emitted C and its wrappers: text for Jinja, no code."""
