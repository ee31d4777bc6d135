"""``python -m gpureport`` and the ``gpureport`` script."""

import sys

from gpureport.runtime.garbage import imported
from gpureport.runtime.streams import INTERRUPTED, settle_streams


def run() -> None:
    """Run the command line and exit with its code."""
    settle_streams()
    try:
        sys.exit(imported("gpureport.cli").main())
    except KeyboardInterrupt:  # while the program itself was still being loaded
        sys.exit(f"gpureport: {INTERRUPTED}")


if __name__ == "__main__":
    run()
