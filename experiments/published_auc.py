"""The authors' AUC on the surgical outcome, from the predictions of the folds that they published.

    python -m experiments.published_auc --from fragility_in_ieeg

The folder is a clone of github.com/adam2392/fragility_in_ieeg. It has the predictions of MORF and
SPORF; those of the other classifiers are not in it. Each fold has one AUC, of the subjects by their
mean predictions, kept in results/published_auc.csv; the table is made again from there.
"""

import argparse
import csv
import io
import json
import statistics
from pathlib import Path

import numpy as np

from experiments import stats
from experiments.convert import Files
from experiments.store import FOLDER, read
from measuring import tables
from measuring.files import write_whole

NAME = Path(__file__).stem
FOLDS = 10
NAMES = {"MORF": "mtmorf", "SPORF": "srerf"}


def subject_auc(content):
    """Return the AUC of a fold, with the mean prediction of each subject."""
    (predictions,), (truth,) = (content[f"validate_pat_{kind}"] for kind in ("predictions", "true"))
    subjects = sorted(truth)
    mean = np.array([np.mean(predictions[subject]) for subject in subjects])
    labels = np.array([int(truth[subject]) for subject in subjects])
    return stats.auc(labels, np.column_stack([1 - mean, mean]))


def collect(source):
    files = Files([source])
    return [
        {"classifier": name, "fold": fold, "auc": round(found, 6)}
        for name, stem in NAMES.items()
        for fold in range(FOLDS)
        for found in [
            subject_auc(json.loads(files.text(f"study_nested_scores_{stem}_fragility_{fold}.json")))
        ]
    ]


def areas(csvs=FOLDER):
    """Return the AUC of each fold by classifier; none if they were not collected."""
    found = tables.group(read(csvs, NAME), "classifier")
    return {name: [row["auc"] for row in rows] for (name,), rows in found.items()}


def figures(csvs, pngs):
    found = areas(csvs)
    if not found:
        return
    p = stats.signed_rank(*found.values())
    lines = [
        [name, f"{statistics.mean(of):.3f} ± {statistics.stdev(of):.3f}", len(of)]
        for name, of in found.items()
    ]
    lines.append(["p of Wilcoxon's signed-rank test", f"{p:.2f}", ""])
    header = ["the authors' predictions", "AUC", "folds"]
    write_whole(Path(csvs) / "published-auc.md", tables.markdown(header, lines))


def main(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="source", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results")
    args = parser.parse_args(words)
    rows = collect(args.source)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(args.out / f"{NAME}.csv", text.getvalue())
    figures(args.out, args.out)
    print((args.out / "published-auc.md").read_text())


if __name__ == "__main__":
    main()
