"""`python -m testbed` is the command `testbed`."""

import sys

from testbed.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
