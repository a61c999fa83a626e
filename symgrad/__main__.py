"""``symgrad`` and ``python -m symgrad``: the command line, in a process of its own.

In: ``sys.argv``.  Out: an exit status.
"""

import gc

from symgrad.garbage import fewer_collections
from symgrad.tools.watched import run


def _work() -> None:
    with fewer_collections():  # of what is imported, too
        try:
            from symgrad.tools.cli import main

            main()
        finally:
            gc.freeze()  # the process ends: what is left need not be looked through


def main() -> None:
    """The command line."""
    run(_work)


if __name__ == "__main__":
    main()
