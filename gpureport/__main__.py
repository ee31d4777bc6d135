"""``python -m gpureport`` and the ``gpureport`` script."""

import os
import sys

from gpureport.values.runtime.garbage import imported
from gpureport.values.runtime.stopping import EXIT_CODE, INTERRUPTED, TERMINATED, end_on_sigterm, is_terminated, settle_streams


def run() -> None:
    """Run the command line and exit with its code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's: nothing here multiplies matrices, and idle threads spin
    settle_streams()
    end_on_sigterm()
    try:
        code = imported("gpureport.cli").main()
    except KeyboardInterrupt:  # while the program itself was still being loaded
        print(f"gpureport: {TERMINATED if is_terminated() else INTERRUPTED}", file=sys.stderr)
        code = EXIT_CODE if is_terminated() else 1
    if is_terminated():
        os._exit(code)  # threads that are still at work are not waited for
    sys.exit(code)


if __name__ == "__main__":
    run()
