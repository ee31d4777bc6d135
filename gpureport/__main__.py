"""``python -m gpureport`` and the ``gpureport`` script."""

import sys

from gpureport.runtime.garbage import imported
from gpureport.runtime.streams import settle_streams


def run() -> None:
    """Run the command line and exit with its code."""
    settle_streams()
    sys.exit(imported("gpureport.cli").main())


if __name__ == "__main__":
    run()
