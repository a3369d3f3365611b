"""The loaders of recorded data, on files of the same layout with generated samples."""

import dataclasses

import numpy as np
import pytest

from experiments import realdata


def archive_set(seed=0, channels=2, times=8):
    random = np.random.RandomState(seed)
    return {
        "X_train": random.normal(size=(6, channels, times)).astype(np.float32),
        "y_train": np.array([0, 1, 2] * 2, dtype=np.uint8),
        "X_test": random.normal(size=(9, channels, times)).astype(np.float32),
        "y_test": np.array([0, 1, 2] * 3, dtype=np.uint8),
    }


def finger_set():
    channels = np.array(["F3", "Fz", "F4", "FC6", "FC5"])
    return {**archive_set(channels=5), "channels": channels}


def ssvep_set():
    random = np.random.RandomState(1)
    return {
        "X": random.normal(size=(12, 3, 10)).astype(np.float32),
        "y": np.tile(np.arange(2, dtype=np.uint8), 6),
        "block": np.repeat(np.arange(6, dtype=np.uint8), 2),
    }


def fragility_set():
    random = np.random.RandomState(2)
    subjects = np.array([f"s{i}" for i in range(6)])
    arrays = {
        "X": random.uniform(size=(12, 4, 9)).astype(np.float32),
        "y": np.repeat([0, 1], 6).astype(np.uint8),
        "subject": np.repeat(subjects, 2),
    }
    for i in range(realdata.FRAGILITY_FOLDS):
        order = random.permutation(6)
        # The published folds name subjects whose recordings are not public.
        arrays[f"fold{i}_train_subjects"] = np.append(subjects[order[:3]], "absent")
        arrays[f"fold{i}_test_subjects"] = subjects[order[3:]]
    return arrays


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a set into a folder, and expect its checksum."""
    monkeypatch.setattr(realdata, "KEPT", tmp_path / "kept")
    monkeypatch.delenv(realdata.VARIABLE, raising=False)

    def write(name, arrays):
        source = realdata.SOURCES[name]
        digits = realdata.checksum(arrays[key] for key in source.arrays)
        monkeypatch.setitem(realdata.SOURCES, name, dataclasses.replace(source, checksum=digits))
        path = tmp_path / source.file
        path.parent.mkdir(exist_ok=True)
        np.savez(path, **arrays)
        return tmp_path

    return write


def test_a_set_of_the_archive_comes_with_its_split(put):
    arrays = archive_set()
    data = realdata.load("GunPoint", put("GunPoint", arrays))
    ((train, test),) = data.folds
    assert np.array_equal(data.X[train], arrays["X_train"])
    assert np.array_equal(data.X[test], arrays["X_test"])
    assert np.array_equal(data.y[test], arrays["y_test"])
    assert data.y.dtype == np.int64
    assert data.groups is None


def test_the_variable_names_the_folder(put, monkeypatch):
    monkeypatch.setenv(realdata.VARIABLE, str(put("GunPoint", archive_set())))
    assert len(realdata.load("GunPoint").X) == 15


def test_ssvep_is_split_by_block(put):
    arrays = ssvep_set()
    data = realdata.load("ssvep", put("ssvep", arrays))
    assert len(data.folds) == 6
    for block, (train, test) in enumerate(data.folds):
        assert set(arrays["block"][test]) == {block}
        assert block not in arrays["block"][train]
        assert len(train) + len(test) == 12


def test_no_subject_is_on_both_sides_of_a_fold(put):
    arrays = fragility_set()
    data = realdata.load("fragility", put("fragility", arrays))
    assert len(data.folds) == realdata.FRAGILITY_FOLDS
    for i, (train, test) in enumerate(data.folds):
        trained, tested = set(data.groups[train]), set(data.groups[test])
        assert not trained & tested
        assert trained == set(arrays[f"fold{i}_train_subjects"]) - {"absent"}
        assert tested == set(arrays[f"fold{i}_test_subjects"])


def test_the_contrast_takes_each_electrode_less_its_mirror_image(put):
    arrays = finger_set()
    folder = put("finger", arrays)
    put(realdata.CONTRAST, arrays)
    X = realdata.load("finger", folder).X
    contrast = realdata.load(realdata.CONTRAST, folder)
    assert np.array_equal(contrast.X, np.stack([X[:, 0] - X[:, 2], X[:, 4] - X[:, 3]], axis=1))
    assert np.array_equal(contrast.y, realdata.load("finger", folder).y)


def test_other_numbers_than_ours_are_refused(put):
    folder = put("GunPoint", archive_set())
    np.savez(folder / "series" / "GunPoint.npz", **archive_set(seed=1))
    with pytest.raises(realdata.Unavailable, match=r"GunPoint.npz does not hold.*checksum"):
        realdata.load("GunPoint", folder)


def test_a_file_that_lacks_an_array_is_named(put):
    folder = put("GunPoint", archive_set())
    np.savez(folder / "series" / "GunPoint.npz", X_train=np.zeros((2, 1, 4)))
    with pytest.raises(realdata.Unavailable, match=r"GunPoint.npz lacks y_train, X_test, y_test"):
        realdata.load("GunPoint", folder)


def test_a_set_that_is_nowhere_says_what_to_do(put, monkeypatch):
    folder = put("GunPoint", archive_set())
    with pytest.raises(realdata.Unavailable, match=r"finger is not in .*eeg/bci2_iv_finger.npz"):
        realdata.load("finger", folder)
    monkeypatch.setattr(realdata, "fetch", lambda name, path: "no network")
    with pytest.raises(realdata.Unavailable, match=r"aeon cannot fetch it \(no network\)"):
        realdata.load("CBF", folder)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(realdata.Unavailable, match="nowhere is no folder"):
        realdata.load("GunPoint", tmp_path / "nowhere")


def test_an_unknown_set_is_refused():
    with pytest.raises(ValueError, match="no data set 'iris'; there are ArrowHead"):
        realdata.load("iris")


def test_the_checksum_sees_values_shapes_and_text():
    X = np.arange(6.0)
    same = realdata.checksum([X])
    assert realdata.checksum([X.astype(np.uint8)]) == same  # how they are stored does not matter
    assert realdata.checksum([X.reshape(2, 3)]) != same
    assert realdata.checksum([X + 1]) != same
    assert realdata.checksum([np.array(["a", "b"])]) != realdata.checksum([np.array(["a", "c"])])


def test_what_aeon_brings_is_kept_and_labels_are_in_their_order(put, tmp_path):
    datasets = pytest.importorskip("aeon.datasets")
    arrays = archive_set()
    put("Libras", arrays)  # for its checksum; then it is taken away
    (tmp_path / "series" / "Libras.npz").unlink()
    names = np.array(["9", "10", "11"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            datasets,
            "load_classification",
            lambda name, split: (
                arrays[f"X_{split}"].astype(np.float64),
                names[arrays[f"y_{split}"]],
            ),
        )
        data = realdata.load("Libras", tmp_path)
    assert np.array_equal(data.y[data.folds[0][0]], arrays["y_train"])
    assert (realdata.KEPT / "series" / "Libras.npz").is_file()
    assert len(realdata.load("Libras", tmp_path).X) == 15  # without aeon now


def test_volumes_keep_their_three_axes_and_are_no_recording(put):
    arrays = archive_set()
    for part in ("train", "test"):
        arrays[f"X_{part}"] = (arrays[f"X_{part}"].reshape(-1, 2, 4, 2) > 0).astype(np.uint8)
    data = realdata.load(realdata.ADRENAL, put(realdata.ADRENAL, arrays))
    ((train, test),) = data.folds
    assert data.X.shape == (15, 2, 4, 2)
    assert data.X.dtype == np.uint8
    assert (len(train), len(test)) == (6, 9)
    assert realdata.ADRENAL not in realdata.RECORDINGS
