"""morforest beside its peers, in one run on one machine.

    python -m benchmarks.bench                     everything, about an hour
    python -m benchmarks.bench --quick             small sizes, some minutes
    python -m benchmarks.bench --only fit predict  some sections
    python -m benchmarks.bench --report            tables and plots from the CSV files

Each library runs in a process of its own (worker.py), and they take turns. Peers run in virtual
environments that are made when they are first needed. benchmarks/README.md says what is measured.
"""

import argparse
import sys
from pathlib import Path

from benchmarks import data, plan, reports, results, sections, summary, targets
from benchmarks.client import Clients
from measuring import peers


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    names = list(sections.SECTIONS)
    add("--mnist", metavar="PATH", help=f"an .npz file; default: the variable {data.VARIABLE}")
    add("--stand-in", action="store_true", help="use enlarged digits instead of MNIST")
    add("--only", nargs="+", choices=names, default=names, metavar="SECTION", help=str(names))
    add("--libraries", nargs="*", choices=peers.LIBRARIES, default=peers.LIBRARIES)
    add("--quick", action="store_true", help="small sizes; results go to results/quick")
    add("--tiny", action="store_true", help=argparse.SUPPRESS)  # a trial of the suite itself
    add("--report", action="store_true", help="write tables and plots from stored results")
    add("--out", type=Path, help="folder of the result files")
    return parser.parse_args()


def main():
    args = arguments()
    quick = args.quick or args.tiny
    folder = args.out or results.folder(quick)
    if args.report:
        for name in args.only:
            reports.write(folder, name)
    else:
        chosen = plan.TINY if args.tiny else plan.QUICK if args.quick else plan.FULL
        measure(args, chosen, folder)
    targets.write(folder, full=not quick)
    summary.write(folder)
    print(f"Results: {folder}")


def measure(args, chosen, folder):
    libraries = dict.fromkeys(("morforest", *args.libraries))
    pythons = peers.interpreters(libraries)
    images = data.images(args.mnist, args.stand_in)
    facts = results.run_facts()
    with Clients(pythons) as clients:
        bench = sections.Bench(clients, chosen, images, folder, facts)
        for name in dict.fromkeys(args.only):
            bench.say(f"section {name}")
            try:
                sections.SECTIONS[name](bench, bench.sheet(name))
            finally:  # show what was measured even if the rest failed
                reports.write(folder, name)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted. The result files hold what was measured.")
