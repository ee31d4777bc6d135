"""Entry point of ``python -m gpureport`` and of the ``gpureport`` script."""

import os
import sys

from gpureport.values.runtime.garbage import imported
from gpureport.values.runtime.stopping import EXIT_CODE, INTERRUPTED, TERMINATED, end_on_sigterm, is_terminated, settle_streams


def run() -> None:
    """Run the command line and exit with its code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for numpy: no code here multiplies matrices, and idle threads use CPU
    settle_streams()
    end_on_sigterm()
    try:
        code = imported("gpureport.cli").main()
    except KeyboardInterrupt:  # during the import of the program
        print(f"gpureport: {TERMINATED if is_terminated() else INTERRUPTED}", file=sys.stderr)
        code = EXIT_CODE if is_terminated() else 1
    if is_terminated():
        os._exit(code)  # does not wait for running threads
    sys.exit(code)


if __name__ == "__main__":
    run()
