"""The stages of the compiler by name, in their order: what ``show`` can print.

In: nothing.  Out: names, which the command line offers before the compiler is imported.
"""

STAGES = ("graph", "reverse", "index", "schedule", "c")
