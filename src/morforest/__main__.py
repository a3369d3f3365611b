"""Run the command line: ``python -m morforest``."""

import sys

from morforest._command_line import main

if __name__ == "__main__":
    sys.exit(main())
