"""``symgrad`` and ``python -m symgrad``: the command line, in a process of its own.

In: ``sys.argv``.  Out: an exit status.
"""

from symgrad.tools.watched import run


def _work() -> None:
    from symgrad.tools.cli import main

    main()


def main() -> None:
    """The command line."""
    run(_work)


if __name__ == "__main__":
    main()
