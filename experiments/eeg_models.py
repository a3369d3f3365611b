"""The classifiers of `make eeg`: the field's own, with settings from its publications, and ours.

Nothing is tuned on any of the sets. All take trials of shape (n, channels, time).
"""

import numpy as np
from scipy import signal
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from experiments import beyond, models

SLDA, XDAWN, CSP = "sLDA", "Xdawn + sLDA", "CSP + LDA"
TANGENT, TANGENT_EVOKED = "tangent space + LR", "tangent space + LR, evoked"
MDM, MDM_EVOKED, MDM_TOLD = "MDM", "MDM, evoked", "MDM, frequencies told"
EEGNET, MINIROCKET = "EEGNet", "MiniRocket"
TRCA, TRCA_PLAIN = "TRCA, filter bank", "TRCA, one band"
PEERS = (
    SLDA,
    XDAWN,
    CSP,
    TANGENT,
    TANGENT_EVOKED,
    MDM,
    MDM_EVOKED,
    MDM_TOLD,
    TRCA_PLAIN,
    TRCA,
    EEGNET,
    MINIROCKET,
)
WINDOWS = 20
COMPONENTS = 6  # of CSP
EVOKED = 4  # components per class of Xdawn
NOTCH = 1.0  # Hz to either side of a frequency that is told
BANDS = 5  # of TRCA with a filter bank, from multiples of the lowest frequency up


class Means(TransformerMixin, BaseEstimator):
    """The means of each channel in windows of equal length, as a row."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        parts = np.array_split(X, min(WINDOWS, X.shape[2]), axis=2)
        return np.stack([part.mean(axis=2) for part in parts], axis=2).reshape(len(X), -1)


class Bands(TransformerMixin, BaseEstimator):
    """The channels once for each frequency, of which all but a narrow band is filtered out."""

    def __init__(self, frequencies, sfreq):
        self.frequencies = frequencies
        self.sfreq = sfreq

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        parts = []
        for frequency in self.frequencies:
            band = frequency - NOTCH, frequency + NOTCH
            sos = signal.butter(2, band, "band", fs=self.sfreq, output="sos")
            parts.append(signal.sosfiltfilt(sos, X, axis=2))
        return np.concatenate(parts, axis=1)


class Trca(ClassifierMixin, BaseEstimator):
    """Task-related component analysis, with the filters of all classes together.

    Nakanishi et al., "Enhancing detection of SSVEPs for a high-speed brain speller using
    task-related component analysis", IEEE Transactions on Biomedical Engineering 65(1), 2018. The
    filter of a class makes its trials as alike as possible. A trial belongs to the class with whose
    mean it correlates best, after the filters of all classes and summed over the bands of a bank.
    """

    def __init__(self, sfreq, lowest, bands=BANDS):
        self.sfreq = sfreq
        self.lowest = lowest  # frequency of the stimuli
        self.bands = bands

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_, self.filters_ = [], []
        for band in self._bands(X):
            of_class = [band[y == c] for c in self.classes_]
            self.means_.append(np.stack([trials.mean(axis=0) for trials in of_class]))
            self.filters_.append(np.stack([reproducible(trials) for trials in of_class], axis=1))
        return self

    def decision_function(self, X):
        scores = 0.0
        for number, band in enumerate(self._bands(X), 1):
            filters, means = self.filters_[number - 1], self.means_[number - 1]
            found, expected = (unit(filters.T @ part) for part in (band, means))
            correlation = np.einsum("nft,cft->nc", found, expected)
            scores = scores + (number**-1.25 + 0.25) * np.sign(correlation) * correlation**2
        return scores

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def _bands(self, X):
        """Yield the signals above each multiple of the lowest frequency."""
        highest = 0.45 * self.sfreq
        for number in range(1, self.bands + 1):
            low = number * self.lowest - 2
            if low < highest:
                sos = signal.butter(4, (low, min(90, highest)), "band", fs=self.sfreq, output="sos")
                yield signal.sosfiltfilt(sos, X, axis=2)


def reproducible(trials):
    """Return the weights of channels whose sum varies least between trials (n, channels, time)."""
    centred = trials - trials.mean(axis=2, keepdims=True)
    each = np.einsum("nct,ndt->cd", centred, centred)
    total = centred.sum(axis=0)
    return eigh(total @ total.T - each, each + 1e-9 * np.trace(each) * np.eye(len(each)))[1][:, -1]


def unit(filtered):
    """Scale what is left of each trial, all its filters together, to length one."""
    centred = filtered - filtered.mean(axis=2, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=(1, 2), keepdims=True))
    return centred / np.where(length > 0, length, 1)


def shrunk_lda():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def make(name, about, seed):
    """Return an unfitted classifier; `about` is an eeg.Set, which knows the rate of its samples."""
    if beyond.ours(name):
        return beyond.make(name, seed, channel_axis=1)
    if name == EEGNET:
        with models.needs("torch", name):
            from experiments.eegnet import EEGNet
        network = EEGNet(about.sfreq, random_state=seed)
        return models.Classifier(network, standardize=True, channels=True)
    if name == MINIROCKET:
        model = models.model(name, models.settings(name, "finger"), (2, WINDOWS), 2, seed, 1)
        return models.Classifier(model)
    return models.Classifier(peer(name, about))


def peer(name, about):
    """Return a peer as its library, or this module, has it."""
    if name == SLDA:
        return make_pipeline(Means(), shrunk_lda())
    if name in (TRCA, TRCA_PLAIN):
        return Trca(about.sfreq, min(about.frequencies), BANDS if name == TRCA else 1)
    if name in (XDAWN, CSP):
        return spatial_filters(name)
    with models.needs("pyriemann", name):
        from pyriemann.classification import MDM as MinimumDistance
        from pyriemann.estimation import Covariances, XdawnCovariances
        from pyriemann.tangentspace import TangentSpace
    evoked = name in (TANGENT_EVOKED, MDM_EVOKED)
    covariances = (
        XdawnCovariances(EVOKED, estimator="oas", xdawn_estimator="oas")
        if evoked
        else Covariances("oas")
    )
    if name in (TANGENT, TANGENT_EVOKED):
        return make_pipeline(covariances, TangentSpace(), LogisticRegression(max_iter=1000))
    if name in (MDM, MDM_EVOKED):
        return make_pipeline(covariances, MinimumDistance())
    if name == MDM_TOLD:
        bands = Bands(about.frequencies, about.sfreq)
        return make_pipeline(bands, covariances, MinimumDistance())
    raise ValueError(f"name must be one of {', '.join(PEERS)}, or one of ours: {name}")


def spatial_filters(name):
    with models.needs("mne", name):
        import mne
        from mne.decoding import CSP as CommonSpatialPatterns
        from mne.decoding import XdawnTransformer
    mne.set_log_level("ERROR")
    if name == CSP:
        patterns = CommonSpatialPatterns(COMPONENTS, reg="ledoit_wolf", log=True)
        return make_pipeline(patterns, LinearDiscriminantAnalysis())
    return make_pipeline(XdawnTransformer(EVOKED, reg="ledoit_wolf"), Means(), shrunk_lda())
