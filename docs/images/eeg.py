"""Draw eeg.png, a picture of docs/eeg.md: MORFOREST_DATA=FOLDER python docs/images/eeg.py.

Words that fit the one before or not, 200 trials of one person (experiments/README.md says where the
file comes from). A forest of patches is fitted to all trials; its scores come from folds.
"""

from __future__ import annotations

import platform
from pathlib import Path

import matplotlib as mpl
import mne
import numpy as np
import sklearn
from sklearn.model_selection import StratifiedKFold, cross_val_score

import morforest
from experiments import realdata
from morforest import MorfClassifier, Neighbours, Patch
from morforest.mne import from_mne, name_splits, plot_maps

mpl.use("Agg")

OUTPUT = Path(__file__).resolve().parent / "eeg.png"
WINDOWS = [(0.0, 0.2), (0.2, 0.35), (0.35, 0.5), (0.5, 0.7), (0.7, 0.9)]
MONTAGE = "easycap-M1"


def epochs() -> mne.BaseEpochs:
    """Return the words as epochs, as they would come from a file."""
    path = realdata.find("n400")
    with np.load(path, allow_pickle=False) as stored:
        X, y, channels = stored["X"], stored["y"], stored["channels"].tolist()
        info = mne.create_info(channels, float(stored["sfreq"]), "eeg")
    events = np.column_stack([np.arange(len(y)), np.zeros(len(y), int), y])
    names = {"related": 0, "unrelated": 1}
    found = mne.EpochsArray(1e-6 * X, info, events, -0.2, names, verbose="error")
    return found.set_montage(MONTAGE)


def main() -> None:
    trials = from_mne(epochs())
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    near = Patch(along={0: Neighbours(trials.positions, k=4)})
    for name, dictionary in {"on the scalp": near, "in the order of the file": Patch()}.items():
        forest = MorfClassifier(dictionary, n_estimators=500, random_state=0, n_jobs=-1)
        scores = cross_val_score(forest, trials.X, trials.y, cv=folds, scoring="roc_auc")
        error = scores.std(ddof=1) / np.sqrt(10)
        print(f"AUC of ten folds, patches {name}: {scores.mean():.3f} ± {error:.3f}")
    forest.fit(trials.X, trials.y)
    importance = forest.feature_importances_ * forest.feature_importances_.size
    channel, step = np.unravel_index(importance.argmax(), importance.shape)
    print(f"highest importance: {trials.names[channel]} at {trials.times[step]:.2f} s")
    print(f"a split: {name_splits(forest.splits_[0], trials)[0]}")
    figure = plot_maps(importance, trials, windows=WINDOWS, label="importance, mean = 1")
    figure.savefig(OUTPUT, dpi=110, metadata={"Software": None})
    versions = f"morforest {morforest.__version__}, scikit-learn {sklearn.__version__}"
    print(f"{OUTPUT.name}: Python {platform.python_version()}, {versions}, MNE {mne.__version__}")


if __name__ == "__main__":
    main()
