"""Trials from MNE-Python, maps of the scalp, and splits in the names of channels.

``pip install morforest[mne]`` installs what this module needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from morforest import _parameters as check
from morforest._splits import TreeSplits

try:
    import mne
    from matplotlib import pyplot as plt
except ImportError as error:
    raise ImportError(
        'morforest.mne needs MNE-Python: install it with pip install "morforest[mne]".'
    ) from error

__all__ = ["Trials", "from_mne", "name_splits", "plot_maps"]

UNITS = {"eeg": "uV", "mag": "fT", "grad": "fT/cm", "seeg": "uV", "ecog": "uV"}
MOST_WINDOWS = 50
MAP_SIZE = 1.5  # inches


class Trials(NamedTuple):
    """Trials with what is known of them.

    A named tuple, so that ``X, y, *_ = from_mne(epochs)`` works.

    Attributes
    ----------
    X : ndarray of shape (n_trials, n_channels, n_times)
        Signals in microvolts, or fT and fT/cm for MEG. Give estimators ``channel_axis=1``.
    y : ndarray of shape (n_trials,)
        Names of the events, or the column of the metadata that was asked for.
    groups : ndarray of shape (n_trials,)
        Which of the given epochs a trial comes from: 0 for all of them, unless a list was given.
        Leave these out one by one in cross-validation.
    names : ndarray of shape (n_channels,)
        Names of the channels.
    times : ndarray of shape (n_times,)
        Seconds.
    positions : ndarray of shape (n_channels, 3) or None
        Places of the sensors in metres, such as ``Neighbours`` takes; None if not all are known.
    info : mne.Info
        What MNE knows of the channels, for its own functions.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    names: np.ndarray
    times: np.ndarray
    positions: np.ndarray | None
    info: Any

    @property
    def feature_names(self) -> np.ndarray:
        """Name of each feature of a flat trial, such as "Cz 0.300 s"."""
        return np.array([f"{name} {time:.3f} s" for name in self.names for time in self.times])


def from_mne(epochs: Any, *, target: str | None = None, picks: Any = "data") -> Trials:
    """Take trials from epochs of MNE-Python.

    Parameters
    ----------
    epochs : mne.BaseEpochs or list of mne.BaseEpochs
        Epochs, or one for each run or person, which must have the same channels and times.
    target : str or None, default=None
        Column of the metadata that is to be predicted. None: the names of the events.
    picks : str or list, default="data"
        Channels as MNE names them, such as ``"eeg"`` or a list of names. Channels that are marked
        as bad are left out.

    Returns
    -------
    Trials
        Signals, targets, groups, and what is known of channels and times.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from morforest import MorfClassifier
    >>> from morforest.mne import from_mne
    >>> info = mne.create_info(["Fz", "Cz", "Pz"], sfreq=100, ch_types="eeg")
    >>> signals = 1e-6 * np.random.default_rng(0).normal(size=(20, 3, 50))
    >>> signals[10:, 1, 20:30] += 2e-6
    >>> events = np.column_stack([np.arange(20), np.zeros(20, int), np.repeat([1, 2], 10)])
    >>> names = {"left": 1, "right": 2}
    >>> epochs = mne.EpochsArray(signals, info, events, event_id=names, verbose="error")
    >>> trials = from_mne(epochs)
    >>> trials.X.shape, trials.y[[0, -1]].tolist(), trials.names[1].item()
    ((20, 3, 50), ['left', 'right'], 'Cz')
    >>> forest = MorfClassifier("series", channel_axis=1, n_estimators=50, random_state=0)
    >>> forest = forest.fit(trials.X, trials.y)
    """
    several = list(epochs) if isinstance(epochs, (list, tuple)) else [epochs]
    if not several:
        raise ValueError("epochs must be epochs of MNE or a list of these, got an empty list.")
    parts = [_picked(each, picks) for each in several]
    first = parts[0]
    for number, part in enumerate(parts[1:], 1):
        _check_alike(first, part, number)
    return Trials(
        X=np.concatenate([_signals(part) for part in parts]),
        y=np.concatenate([_targets(part, target) for part in parts]),
        groups=np.repeat(np.arange(len(parts)), [len(part.events) for part in parts]),
        names=np.array(first.ch_names),
        times=np.array(first.times),
        positions=_positions(first.info),
        info=first.info,
    )


def _picked(epochs: Any, picks: Any) -> Any:
    """Return a copy of epochs with good channels alone."""
    if not isinstance(epochs, mne.BaseEpochs):
        raise TypeError(
            "epochs must be epochs of MNE, such as mne.read_epochs returns, or a list of these, "
            f"got {type(epochs).__name__}."
        )
    loaded = epochs.copy().load_data()
    if not len(loaded.events):
        raise ValueError("epochs must have at least one trial: all were dropped or rejected.")
    return loaded.pick(picks, exclude="bads")


def _check_alike(first: Any, part: Any, number: int) -> None:
    """Require the channels and times of the first epochs."""
    if part.ch_names != first.ch_names:
        other = sorted(set(part.ch_names) ^ set(first.ch_names))
        what = f"{', '.join(other)} are in one of them only" if other else "their order differs"
        raise ValueError(
            f"epochs[{number}] must have the channels of epochs[0], but {what}: interpolate bad "
            "channels, or name those that all have in picks."
        )
    if len(part.times) != len(first.times) or not np.allclose(part.times, first.times):
        raise ValueError(
            f"epochs[{number}] must have the times of epochs[0], got {_span(part.times)} instead "
            f"of {_span(first.times)}: crop and resample them alike."
        )


def _span(times: np.ndarray) -> str:
    return f"{times[0]:.3f} to {times[-1]:.3f} s in {len(times)} steps"


def _signals(epochs: Any) -> np.ndarray:
    """Return signals in the units that people read."""
    kinds = set(epochs.get_channel_types())
    units = {kind: unit for kind, unit in UNITS.items() if kind in kinds}
    return np.asarray(epochs.get_data(picks="all", units=units or None), dtype=np.float32)


def _targets(epochs: Any, target: str | None) -> np.ndarray:
    if target is None:
        names = {number: name for name, number in epochs.event_id.items()}
        return np.array([names[number] for number in epochs.events[:, 2].tolist()])
    metadata = epochs.metadata
    columns = [] if metadata is None else list(metadata.columns)
    if target not in columns:
        found = ", ".join(map(str, columns)) if columns else "none: epochs have no metadata"
        raise ValueError(f"target must be a column of epochs.metadata, got {target!r}; {found}.")
    return np.asarray(metadata[target])


def _positions(info: Any) -> np.ndarray | None:
    """Return where sensors are, if that is known of all."""
    places = np.array([channel["loc"][:3] for channel in info["chs"]], dtype=np.float64)
    known = np.isfinite(places).all(axis=1) & places.any(axis=1)
    return places if known.all() else None


# --- maps -----------------------------------------------------------------------------------------


def plot_maps(
    values: Any,
    trials: Trials,
    *,
    windows: int | Sequence[tuple[float, float]] = 5,
    titles: Sequence[str] | None = None,
    label: str = "importance",
) -> Any:
    """Draw values of channels over time as a curve, and as maps of the scalp.

    Parameters
    ----------
    values : array-like of shape (n_channels, n_times) or (n_channels, n_maps)
        One value per channel and step, such as ``feature_importances_`` or the mean of
        ``attributions``; with `titles`, one per channel and map, such as a band of frequencies.
    trials : Trials
        The trials, whose channels need positions: `set_montage` of epochs gives them.
    windows : int or list of (float, float), default=5
        Maps show means over so many windows of equal length, or from one second to the other.
    titles : list of str or None, default=None
        If given, each column of `values` is a map of that title, and there is no curve.
    label : str, default="importance"
        What the values are.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. All maps share their colours, from zero up, or around zero if some values are
        negative.
    """
    values = np.asarray(values, dtype=np.float64)
    columns = len(trials.times) if titles is None else len(titles)
    if values.shape != (len(trials.names), columns) or not np.isfinite(values).all():
        what = "times" if titles is None else "titles"
        raise ValueError(
            f"values must be finite and of shape ({len(trials.names)}, {columns}), one for each of "
            f"the channels and {what}, got shape {values.shape}."
        )
    if trials.positions is None:
        raise ValueError(
            "trials must know where all channels are: call epochs.set_montage, such as with "
            '"easycap-M1", before from_mne.'
        )
    if titles is not None:
        return _draw(values, list(titles), trials, [], label)
    spans = _spans(windows, trials.times)
    inside = [(trials.times >= start) & (trials.times <= end) for start, end in spans]
    maps = np.stack([values[:, steps].mean(axis=1) for steps in inside], axis=1)
    names = [f"{start:.2f} to {end:.2f} s" for start, end in spans]
    figure = _draw(maps, names, trials, spans, label)
    curve = figure.axes[0]
    curve.plot(trials.times, values.mean(axis=0), color="0.2")
    curve.set(xlabel="time (s)", ylabel="mean of channels", xlim=trials.times[[0, -1]])
    return figure


def _spans(windows: Any, times: np.ndarray) -> list[tuple[float, float]]:
    """Return the windows, each of which has a step."""
    if check.is_integer(windows):
        check.check_integer("windows", windows, 1, min(MOST_WINDOWS, len(times)))
        parts = np.array_split(times, windows)
        return [(float(part[0]), float(part[-1])) for part in parts]
    spans = np.asarray(windows, dtype=np.float64)
    if spans.ndim != 2 or spans.shape[1] != 2 or not 1 <= len(spans) <= MOST_WINDOWS:
        raise ValueError(
            f"windows must be a number, or 1 to {MOST_WINDOWS} pairs of seconds, got {windows!r}."
        )
    for start, end in spans:
        if not ((times >= start) & (times <= end)).any():
            raise ValueError(
                f"windows must lie within {_span(times)}, but none is from {start} to {end} s."
            )
    return [(float(start), float(end)) for start, end in spans]


def _draw(
    maps: np.ndarray, names: list[str], trials: Trials, spans: list[tuple[float, float]], label: str
) -> Any:
    """Return a figure of maps in a row, below an empty axis for the curve where there are spans."""
    largest = float(np.abs(maps).max()) or 1.0
    signed = bool((maps < 0).any())
    limits = (-largest if signed else 0.0, largest)
    heights = [1.0, 1.2] if spans else [1.0]
    size = (MAP_SIZE * max(len(names), 2) + 0.8, MAP_SIZE * 1.4 * len(heights))
    figure = plt.figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(len(heights), len(names), height_ratios=heights)
    if spans:
        curve = figure.add_subplot(grid[0, :])
        curve.spines[["top", "right"]].set_visible(False)
        for number, (start, end) in enumerate(spans):
            curve.axvspan(start, end, color=("0.93", "0.97")[number % 2], linewidth=0)
    below = [figure.add_subplot(grid[-1, i]) for i in range(len(names))]
    for axes, column, name in zip(below, maps.T, names, strict=True):
        image, _ = mne.viz.plot_topomap(
            column,
            trials.info,
            axes=axes,
            show=False,
            cmap="RdBu_r" if signed else "Reds",
            vlim=limits,
            contours=0,
        )
        axes.set_title(name, fontsize="medium")
    figure.colorbar(image, ax=below, label=label, shrink=0.8)
    return figure


# --- splits in words ------------------------------------------------------------------------------


def name_splits(splits: TreeSplits, trials: Trials) -> np.ndarray:
    """Say what the splits of a tree look at, by channels and times.

    Parameters
    ----------
    splits : TreeSplits
        The splits of one tree, such as ``forest.splits_[0]`` of a forest that was fitted on
        ``trials.X``.
    trials : Trials
        The trials.

    Returns
    -------
    ndarray of str
        One text per split, such as "Cz Pz 0.300 to 0.420 s - Fz 0.300 to 0.420 s". Weights are
        left out, and so are positions that a pooled atom does not begin at.
    """
    features = splits.atoms.shape[1] // len(splits.views)
    if features != len(trials.names) * len(trials.times):
        raise ValueError(
            f"splits must be those of a model of trials.X, whose trials have {len(trials.names)} "
            f"channels and {len(trials.times)} times; these have {features} features."
        )
    matrix = splits.atoms.sorted_indices()
    texts = []
    for split, operation in enumerate(splits.operation.tolist()):
        terms = slice(matrix.indptr[split], matrix.indptr[split + 1])
        words = _words(matrix.indices[terms], matrix.data[terms], splits.views, trials)
        plain = operation in ("none", "combination")
        texts.append(words if plain else f"{operation}({words})")
    return np.array(texts, dtype=object)


def _words(columns: np.ndarray, weights: np.ndarray, views: tuple[str, ...], trials: Trials) -> str:
    """Join channels that are used at the same times, with the same sign, in the same view."""
    steps = len(trials.times)
    runs: dict[tuple[int, bool, int, int], list[str]] = {}
    channel_of, step_of = np.divmod(columns, steps)
    ends = np.flatnonzero(
        (np.diff(columns) != 1) | (np.diff(channel_of) != 0) | (np.diff(np.sign(weights)) != 0)
    )
    for part in np.split(np.arange(len(columns)), ends + 1):
        view, channel = divmod(int(channel_of[part[0]]), len(trials.names))
        key = view, bool(weights[part[0]] < 0), int(step_of[part[0]]), int(step_of[part[-1]])
        runs.setdefault(key, []).append(str(trials.names[channel]))
    text = ""
    for (view, negative, start, end), names in runs.items():
        when = f"{trials.times[start]:.3f}"
        when += "" if start == end else f" to {trials.times[end]:.3f}"
        words = f"{' '.join(names)} {when} s"
        words = words if views[view] == "raw" else f"{views[view]}({words})"
        sign = (" - " if negative else " + ") if text else ("-" if negative else "")
        text += sign + words
    return text
