"""``python -m gpureport`` and the ``gpureport`` script."""

import sys

from gpureport.cli import main


def run() -> None:
    """Run the command line and exit with its code."""
    sys.exit(main())


if __name__ == "__main__":
    run()
