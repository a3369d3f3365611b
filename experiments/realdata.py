"""Real data: eleven sets of the UCR and UEA archives, seven of EEG (one in two forms), volumes.

They are read from a folder that you name, by an argument or by the variable MORFOREST_DATA;
README.md describes its layout. Sets of the archives that are not there are fetched with aeon, if it
is installed and the network allows, and kept in `.data`. All must match a checksum.
"""

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from measuring import arrays

VARIABLE = "MORFOREST_DATA"
KEPT = Path(__file__).resolve().parent.parent / ".data"  # what was fetched
ARCHIVE = "UCR/UEA archive, timeseriesclassification.com"
FINGER = "BCI competition II, set IV, as in the public repository sunjianjunraymon/CBFP-BCI-II-IV"
GIVEN = arrays.ARRAYS
FRAGILITY_FOLDS = 10
# The finger movements again, as each left electrode less its mirror image on the right, which an
# atom that only adds neighbours cannot form. Comparisons over sets omit it: it is no new recording.
CONTRAST = "finger-contrast"
ADRENAL = "adrenal"
# More EEG, by the array that says which trials were recorded together.
RUNS = {"n400": "", "p300": "subject", "left-right": "block", "ssvep-exo": "subject"}


@dataclass(frozen=True)
class Source:
    file: str  # in the folder
    origin: str
    arrays: tuple[str, ...]  # what the checksum covers, in this order
    checksum: str  # `checksum` below, its first 16 digits
    folds: int = 1  # that the data come with
    filtered: bool = False  # X is then covered by its `outline` below


@dataclass(frozen=True)
class DataSet:
    """Samples with the splits that their makers gave.

    `groups` names the subject of each sample where a subject has several: then no subject is on
    both sides of a fold, and scores are those of subjects.
    """

    name: str
    X: np.ndarray  # (n, channels, time), or (n, depth, height, width)
    y: np.ndarray  # 0, 1, ...
    folds: tuple[tuple[np.ndarray, np.ndarray], ...]  # rows for training, rows for testing
    groups: np.ndarray | None = None


class Unavailable(LookupError):
    """A set is missing, or is not what it should be; the message says what to do."""


CHECKSUMS = {
    "ArrowHead": "798fb0ae64bbdf88",
    "BasicMotions": "729487df9115bfcf",
    "CBF": "3236c8db8f686a71",
    "Coffee": "5676a37fa787996f",
    "ECG200": "15cca0d1faed6ba9",
    "Epilepsy": "c045773d3becba6e",
    "GunPoint": "8cc372b238dda0b5",
    "ItalyPowerDemand": "1bea9edb52f1bfeb",
    "Libras": "e25a6049344c58a5",
    "NATOPS": "628452cda87e7e21",
    "RacketSports": "1fef0114379f3c32",
}
SOURCES = {
    **{
        name: Source(f"series/{name}.npz", ARCHIVE, GIVEN, digits)
        for name, digits in CHECKSUMS.items()
    },
    "finger": Source(
        "eeg/bci2_iv_finger.npz",
        FINGER,
        GIVEN,
        "c9f2a2c0b4834488",
    ),
    CONTRAST: Source(
        "eeg/bci2_iv_finger.npz",
        FINGER,
        (*GIVEN, "channels"),
        "1b96057f6e6081f2",
    ),
    "ssvep": Source(
        "eeg/ssvep_trca.npz",
        "the example recording in the source archive of the Python package meegkit 0.1.3",
        ("X", "y", "block"),
        "312f6073e1422634",
        folds=6,
    ),
    "fragility": Source(
        "eeg/fragility_interpretability.npz",
        "the public repository adam2392/fragility_in_ieeg",
        (
            *("X", "y", "subject"),
            *(
                f"fold{i}_{part}_subjects"
                for i in range(FRAGILITY_FOLDS)
                for part in ("train", "test")
            ),
        ),
        "7fc2f6ab04815b62",
        folds=FRAGILITY_FOLDS,
    ),
    "n400": Source(
        "eeg/n400_words.npz",
        "the public repository wmvanvliet/neuroscience_tutorials",
        ("X", "y"),
        "4240aee76a67eef2",
        folds=10,
        filtered=True,
    ),
    "p300": Source(
        "eeg/p300_gtec.npz",
        "the public repository esbenkc/P300-Tweaks",
        ("X", "y", "subject", "block"),
        "6b5215e57e655154",
        folds=5,
        filtered=True,
    ),
    "left-right": Source(
        "eeg/muse_leftright.npz",
        "the history of the public repository alexandrebarachant/muse-lsl",
        ("X", "y", "block"),
        "c797b811d70202ca",
        folds=5,
        filtered=True,
    ),
    "ssvep-exo": Source(
        "eeg/ssvep_exo.npz",
        "the public repository sylvchev/dataset-ssvep-exoskeleton",
        ("X", "y", "subject", "block"),
        "4dafeae10a8a0238",
        folds=12,
        filtered=True,
    ),
    ADRENAL: Source(
        "volumes/adrenalmnist3d.npz",
        "AdrenalMNIST3D of MedMNIST v2, medmnist.com",
        GIVEN,
        "e4cfabb88f3aea56",
    ),
}
RECORDINGS = tuple(name for name in SOURCES if name not in (ADRENAL, *RUNS))


def load(name, folder=None):
    """Return the set of that name from `folder`, by default the one that MORFOREST_DATA names."""
    if name not in SOURCES:
        raise ValueError(f"no data set {name!r}; there are {', '.join(SOURCES)}")
    source = SOURCES[name]
    path = find(name, folder)
    with np.load(path, allow_pickle=False) as stored:
        missing = [key for key in source.arrays if key not in stored]
        if missing:
            raise Unavailable(f"{path} lacks {', '.join(missing)}; {_wanted(source)}.")
        found = {key: stored[key] for key in source.arrays}
    digits = checksum_of(found, source)
    if digits != source.checksum:
        raise Unavailable(
            f"{path} does not hold the data of our results (checksum "
            f"{digits}, expected {source.checksum}): replace it by a copy from "
            f"{source.origin}; {_wanted(source)}."
        )
    return _form(name, found)


def available(names, load):
    """Return the sets that can be loaded; name the others on screen, and fail if there is none."""
    found, reasons = {}, []
    for name in names:
        try:
            found[name] = load(name)
        except Unavailable as reason:
            reasons.append(reason)
    if not found:
        raise reasons[0]
    for reason in reasons:
        print(f"LEFT OUT {reason}", file=sys.stderr)
    return found


def left_less_right(X, channels):
    """Subtract right from left channels: an odd number has the next even one as its mirror."""
    at = {channel: i for i, channel in enumerate(channels)}
    pairs = [
        (channel, f"{channel[:-1]}{int(channel[-1]) + 1}")
        for channel in channels
        if channel[-1] in "13579"
    ]
    return np.stack([X[:, at[left]] - X[:, at[right]] for left, right in pairs], axis=1)


def _form(name, found):
    if name in RUNS:
        _, y = np.unique(found["y"], return_inverse=True)
        return DataSet(name, found["X"], y, folds_of(found, RUNS[name]))
    if name == "ssvep":
        blocks = found["block"]
        folds = tuple(
            (np.flatnonzero(blocks != b), np.flatnonzero(blocks == b)) for b in np.unique(blocks)
        )
        return DataSet(name, found["X"], found["y"].astype(np.int64), folds)
    if name == "fragility":
        subjects = found["subject"]
        folds = tuple(
            tuple(
                np.flatnonzero(np.isin(subjects, found[f"fold{i}_{part}_subjects"]))
                for part in ("train", "test")
            )
            for i in range(FRAGILITY_FOLDS)
        )
        return DataSet(name, found["X"], found["y"].astype(np.int64), folds, subjects)
    X = np.concatenate([found["X_train"], found["X_test"]])
    if name == CONTRAST:
        X = left_less_right(X, found["channels"])
    y = np.concatenate([found["y_train"], found["y_test"]]).astype(np.int64)
    rows, n = np.arange(len(X)), len(found["X_train"])
    return DataSet(name, X, y, ((rows[:n], rows[n:]),))


def folds_of(found, runs):
    """Return the folds of EEG: by run; within each person, later blocks; or by chance.

    Runs of one person are left out in turn. Of several persons, each is a fold, whose last blocks
    are for testing: two of five, or one of fewer. Without either, there are two times five folds.
    """
    rows = np.arange(len(found["y"]))
    if not runs:
        chance = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
        return tuple(chance.split(rows, found["y"]))
    names = found[runs]
    if runs == "block":
        return tuple((rows[names != b], rows[names == b]) for b in np.unique(names))
    blocks = found["block"]
    folds = []
    for person in np.unique(names):
        theirs = rows[names == person]
        count = blocks[theirs].max() + 1
        late = blocks[theirs] >= count - (2 if count == 5 else 1)
        folds.append((theirs[~late], theirs[late]))
    return tuple(folds)


def find(name, folder=None):
    """Return the file of a set from the folder, from what was fetched before, or fetched now."""
    source = SOURCES[name]
    given = folder or os.environ.get(VARIABLE)
    if given and not Path(given).expanduser().is_dir():
        raise Unavailable(f"{given} is no folder; the argument or {VARIABLE} must name one.")
    for place in filter(None, (given, KEPT)):
        path = Path(place).expanduser() / source.file
        if path.is_file():
            return path
    if source.origin == ARCHIVE:
        reason = fetch(name, KEPT / source.file)
        if not reason:
            return KEPT / source.file
        reason = f"aeon cannot fetch it ({reason})"
    else:
        reason = "no library fetches it"
    where = f"in {given}" if given else f"here, and {VARIABLE} is not set"
    raise Unavailable(
        f"{name} is not {where}, and {reason}. Put it as {source.file} into a folder and name that "
        f"in {VARIABLE}. It comes from {source.origin}; {_wanted(source)}."
    )


def _wanted(source):
    return f"experiments/README.md describes the arrays of {source.file}"


def fetch(name, path):
    """Fetch a set of the archives to a path. Return None, or the reason of a failure."""
    try:
        from aeon.datasets import load_classification
    except ImportError as error:
        return str(error)
    try:
        parts = [load_classification(name, split=split) for split in ("train", "test")]
    except Exception as error:  # aeon has no common error for network, archive and parser
        return f"{type(error).__name__}: {error}"
    classes = sorted({label for _, y in parts for label in y}, key=class_order)
    given = []  # in the order of GIVEN
    for X, y in parts:
        given.append(X.astype(np.float32))
        given.append(np.array([classes.index(label) for label in y], dtype=np.uint8))
    found = checksum(given)
    if found != SOURCES[name].checksum:
        return f"what came has the checksum {found}, expected {SOURCES[name].checksum}"
    arrays.save(path, *given, compressed=True)
    return None


def class_order(label):
    """Sort numbers by value, so that 10 comes after 9, and other labels by their letters."""
    try:
        return (0, float(label), label)
    except ValueError:
        return (1, 0.0, label)


def checksum_of(found, source):
    """Return the checksum of the arrays of a source."""
    filtered = source.filtered
    return checksum(
        outline(found[key]) if filtered and key == "X" else found[key] for key in source.arrays
    )


def outline(X):
    """Return root mean squares of channels and of steps, as text of five digits.

    Filters of another version of SciPy may round the last bit of float32 differently; this is what
    stays. The second half weights trials by their number, so that their order counts too.
    """
    power = np.square(X, dtype=np.float64)
    late = power * (np.arange(1, len(X) + 1) / len(X))[:, None, None]
    means = [part.mean(axis=axes) for part in (power, late) for axes in ((0, 2), (0, 1))]
    return np.array([f"{value:.4e}" for value in np.sqrt(np.concatenate(means))])


def checksum(values):
    """Return a checksum of values: of numbers as little-endian float32, of text as UTF-8."""
    digest = hashlib.sha256()
    for array in values:
        digest.update(repr(array.shape).encode())
        if array.dtype.kind == "U":
            digest.update("\n".join(array.ravel()).encode())
        else:
            digest.update(np.ascontiguousarray(array, dtype="<f4").tobytes())
    return digest.hexdigest()[:16]
