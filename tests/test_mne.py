"""The door to MNE-Python: trials, maps of the scalp, splits in words."""

import dataclasses

import numpy as np
import pytest

mne = pytest.importorskip("mne")
from matplotlib import pyplot as plt  # noqa: E402

from morforest import Haar, MorfClassifier, Neighbours, Patch  # noqa: E402
from morforest.mne import from_mne, name_splits, plot_maps  # noqa: E402

NAMES = ["Fz", "C3", "Cz", "C4", "Pz", "Oz"]
MONTAGE = "easycap-M1"  # which no version of MNE has renamed
EVENTS = {"left": 7, "right": 3}


def epochs_of(n=20, names=NAMES, montage=MONTAGE, sfreq=50.0, seed=0, metadata=None):
    random = np.random.default_rng(seed)
    info = mne.create_info(list(names), sfreq, "eeg")
    signals = 1e-6 * random.normal(size=(n, len(names), 30))
    events = np.column_stack([np.arange(n), np.zeros(n, int), np.resize([7, 3], n)])
    signals[events[:, 2] == 3, 1, 10:20] += 3e-6
    epochs = mne.EpochsArray(
        signals, info, events, tmin=-0.1, event_id=EVENTS, metadata=metadata, verbose="error"
    )
    return epochs.set_montage(montage) if montage else epochs


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


# --- trials ---------------------------------------------------------------------------------------


def test_trials_are_those_of_the_epochs():
    epochs = epochs_of()
    trials = from_mne(epochs)
    X, y, *_ = trials
    assert X.dtype == np.float32
    np.testing.assert_allclose(X, 1e6 * epochs.get_data(), rtol=1e-6)
    assert y.tolist() == ["left", "right"] * 10
    assert trials.names.tolist() == NAMES
    np.testing.assert_allclose(trials.times, np.arange(30) / 50 - 0.1)
    assert trials.groups.tolist() == [0] * 20
    assert trials.feature_names.shape == (180,)
    assert trials.feature_names[30] == "C3 -0.100 s"


def test_a_file_is_read_as_it_was_written(tmp_path):
    epochs = epochs_of()
    epochs.save(tmp_path / "words-epo.fif", verbose="error")
    again = from_mne(mne.read_epochs(tmp_path / "words-epo.fif", preload=False, verbose="error"))
    trials = from_mne(epochs)
    np.testing.assert_allclose(again.X, trials.X, rtol=1e-5)
    np.testing.assert_allclose(again.positions, trials.positions, atol=1e-6)
    assert again.y.tolist() == trials.y.tolist()


def test_positions_are_those_of_the_montage():
    trials = from_mne(epochs_of())
    known = mne.channels.make_standard_montage(MONTAGE).get_positions()["ch_pos"]
    assert trials.positions.shape == (6, 3)
    front, back = trials.positions[0], trials.positions[5]
    assert front[1] > back[1]  # the second coordinate points to the nose
    assert np.linalg.norm(known["Fz"]) > 0
    assert Neighbours(trials.positions, k=2).sample((6,), 3, random_state=0).shape[0] == 3
    assert from_mne(epochs_of(montage=None)).positions is None


def test_bad_channels_are_left_out_and_the_epochs_are_not_changed():
    epochs = epochs_of()
    epochs.info["bads"] = ["C4"]
    trials = from_mne(epochs)
    assert trials.names.tolist() == [name for name in NAMES if name != "C4"]
    assert trials.X.shape == (20, 5, 30)
    assert epochs.ch_names == NAMES
    assert from_mne(epochs, picks=["Cz", "Pz"]).names.tolist() == ["Cz", "Pz"]


def test_several_recordings_are_groups():
    first, second = epochs_of(6), epochs_of(4, seed=1)
    trials = from_mne([first, second])
    assert trials.groups.tolist() == [0] * 6 + [1] * 4
    np.testing.assert_array_equal(trials.X[6:], from_mne(second).X)


def test_a_column_of_the_metadata_can_be_the_target():
    pd = pytest.importorskip("pandas")
    speed = np.linspace(0, 1, 20)
    epochs = epochs_of(metadata=pd.DataFrame({"speed": speed}))
    np.testing.assert_array_equal(from_mne(epochs, target="speed").y, speed)
    with pytest.raises(ValueError, match=r"target must be a column.*got 'sped'; speed"):
        from_mne(epochs, target="sped")
    with pytest.raises(ValueError, match="epochs have no metadata"):
        from_mne(epochs_of(), target="speed")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 2, 4)), "epochs must be epochs of MNE.*got ndarray"),
        ([], "got an empty list"),
        ([epochs_of(2), epochs_of(2, NAMES[:5])], r"epochs\[1\] must have.*Oz are in one of them"),
        ([epochs_of(2), epochs_of(2, NAMES[::-1])], "their order differs"),
        ([epochs_of(2), epochs_of(2, sfreq=60.0)], r"times of epochs\[0\].*crop and resample"),
    ],
)
def test_what_cannot_be_read_is_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        from_mne(given)


def test_epochs_without_trials_are_refused():
    with pytest.raises(ValueError, match="at least one trial"):
        from_mne(epochs_of()[:0])


def test_a_forest_finds_the_channel_and_the_time():
    trials = from_mne(epochs_of(60))
    forest = MorfClassifier(Patch((1, 1), (2, 8)), n_estimators=30, random_state=0)
    shares = forest.fit(trials.X, trials.y).feature_importances_
    assert forest.classes_.tolist() == ["left", "right"]
    assert shares.sum(axis=1).argmax() == 1
    assert 10 <= shares[1].argmax() < 20


# --- maps -----------------------------------------------------------------------------------------


def test_maps_are_means_over_windows(monkeypatch):
    drawn = []
    draw = mne.viz.plot_topomap

    def keep(values, info, **options):
        drawn.append((values, options["vlim"], options["cmap"]))
        return draw(values, info, **options)

    monkeypatch.setattr(mne.viz, "plot_topomap", keep)
    trials = from_mne(epochs_of())
    values = np.arange(180.0).reshape(6, 30)
    figure = plot_maps(values, trials, windows=[(0.0, 0.1), (0.2, 0.2)])
    np.testing.assert_allclose(drawn[0][0], values[:, 5:11].mean(axis=1))
    np.testing.assert_allclose(drawn[1][0], values[:, 15])
    largest = max(map(np.max, (values[:, 5:11].mean(axis=1), values[:, 15])))
    assert drawn[0][1:] == ((0.0, largest), "Reds")
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), values.mean(axis=0))
    assert [axes.get_title() for axes in figure.axes[1:3]] == ["0.00 to 0.10 s", "0.20 to 0.20 s"]
    drawn.clear()
    figure = plot_maps(-values[:, :2], trials, titles=["alpha", "beta"], label="weight")
    assert len(drawn) == 2
    assert drawn[0][1:] == ((-151.0, 151.0), "RdBu_r")
    assert figure.axes[0].get_title() == "alpha"


def test_equal_windows_cover_all_steps():
    trials = from_mne(epochs_of())
    figure = plot_maps(np.zeros((6, 30)), trials, windows=3)
    assert [axes.get_title() for axes in figure.axes[1:4]] == [
        "-0.10 to 0.08 s",
        "0.10 to 0.28 s",
        "0.30 to 0.48 s",
    ]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros((6, 29)), {}, r"shape \(6, 30\), one for each of the channels and times"),
        (np.zeros((6, 30)), {"titles": ["a"]}, r"shape \(6, 1\).*titles, got shape \(6, 30\)"),
        (np.full((6, 30), np.nan), {}, "values must be finite"),
        (np.zeros((6, 30)), {"windows": 0}, "windows must be an integer from 1 to 30, got 0"),
        (np.zeros((6, 30)), {"windows": (0.1, 0.2)}, "windows must be a number, or 1 to 50 pairs"),
        (np.zeros((6, 30)), {"windows": [(2, 3)]}, "windows must lie within -0.100 to 0.480 s"),
    ],
)
def test_what_cannot_be_drawn_is_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        plot_maps(values, from_mne(epochs_of()), **options)


def test_maps_need_a_montage():
    with pytest.raises(ValueError, match=r"call epochs\.set_montage"):
        plot_maps(np.zeros((6, 30)), from_mne(epochs_of(montage=None)))


# --- splits in words ------------------------------------------------------------------------------


def test_a_patch_is_named_by_its_channels_and_times():
    trials = from_mne(epochs_of(60))
    forest = MorfClassifier(Patch((2, 3), (2, 3)), n_estimators=1, random_state=0)
    tree = forest.fit(trials.X, trials.y).splits_[0]
    box = tree.atoms[[0]].toarray().reshape(6, 30) != 0
    channels, steps = np.flatnonzero(box.any(axis=1)), np.flatnonzero(box.any(axis=0))
    start, end = trials.times[steps[[0, -1]]]
    names = " ".join(trials.names[channels])
    assert name_splits(tree, trials)[0] == f"{names} {start:.3f} to {end:.3f} s"


def test_signs_views_and_operations_are_named():
    trials = from_mne(epochs_of(60))
    haar = Haar((1, 2), (1, 6), pool="max")
    forest = MorfClassifier(haar, n_estimators=1, random_state=0).fit(trials.X, trials.y)
    tree = forest.splits_[0]
    texts = name_splits(tree, trials)
    assert all(text.startswith("max(") for text in texts)
    assert any(" - " in text for text in texts)
    several = dataclasses.replace(
        tree,
        atoms=tree.atoms[:1],
        operation=np.array(["none"], dtype=object),
        views=("raw",),
    )
    row = np.zeros((1, 180))
    row[0, [29, 30]] = 1.0  # the last step of a channel and the first of the next
    row[0, [65, 66]] = -1.0
    changed = dataclasses.replace(several, atoms=type(tree.atoms)(row))
    assert name_splits(changed, trials).tolist() == [
        "Fz 0.480 s + C3 -0.100 s - Cz 0.000 to 0.020 s"
    ]
    twice = dataclasses.replace(
        changed, atoms=type(tree.atoms)(np.hstack([0 * row, -row])), views=("raw", "square")
    )
    assert name_splits(twice, trials)[0].startswith("-square(Fz 0.480 s) - square(C3")


def test_splits_of_other_trials_are_refused():
    trials = from_mne(epochs_of())
    forest = MorfClassifier(Patch(), n_estimators=1, random_state=0)
    tree = forest.fit(trials.X[:, :4], trials.y).splits_[0]
    with pytest.raises(ValueError, match="6 channels and 30 times; these have 120 features"):
        name_splits(tree, trials)
