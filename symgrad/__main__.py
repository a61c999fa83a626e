"""``python -m symgrad``: the command line.

In: ``sys.argv``.  Out: an exit status.  Imports ``symgrad.cli``.
"""

from symgrad.cli import main

if __name__ == "__main__":
    main()
