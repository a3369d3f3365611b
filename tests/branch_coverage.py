"""Fail if tests take too few of the branches of the Python layer, whatever they do of its lines.

coverage's own limit is for statements and branches together, where many statements hide branches.
"""

import json
import sys
from pathlib import Path

LEAST = 95.0  # per cent


def main(report):
    totals = json.loads(Path(report).read_text())["totals"]
    taken = 100 * totals["covered_branches"] / totals["num_branches"]
    print(f"{taken:.1f} % of {totals['num_branches']} branches taken")
    if taken < LEAST:
        sys.exit(f"branch coverage is below {LEAST} %: see the list above")


if __name__ == "__main__":
    main(sys.argv[1])
