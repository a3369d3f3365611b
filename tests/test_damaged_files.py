"""Damaged and foreign model files are refused, and files are written whole or not at all."""

import hashlib
import json
import os
import pickle
import signal
import stat
import subprocess
import sys

import damage
import numpy as np
import pytest
from damage import model
from sklearn.exceptions import NotFittedError
from test_files import changed

import morforest
from morforest import _container as container
from morforest._bits import pack_bits, packed_size, unpack_bits, width_of


def test_small_numbers_share_bytes():
    random = np.random.default_rng(0)
    for largest, width in ((0, 1), (1, 1), (3, 2), (4, 4), (15, 4), (16, None)):
        for count in (0, 1, 7, 8, 9, 1000):
            values = random.integers(0, largest + 1, count).astype(np.uint8)
            values[:1] = largest
            if width is None or not count:
                assert not count or width_of(values) is None
                continue
            assert width_of(values) == width
            packed = pack_bits(values, width)
            assert len(packed) == packed_size(width, count)
            np.testing.assert_array_equal(unpack_bits(packed, width, count), values)


def test_arrays_are_saved_whatever_their_order_in_memory(tmp_path):
    arrays = {
        "transposed": np.arange(12, dtype=np.int16).reshape(3, 4).T,
        "backwards": np.arange(5.0)[::-1],
        "every second": np.arange(10, dtype=np.uint8)[::2],
        "big endian": np.arange(4, dtype=">i4"),
        "one": np.array(3.5),
        "none": np.empty((0, 3), dtype=np.float32),
        "flags": np.array([True, False]),
    }
    container.write(tmp_path / "file", "text", arrays)
    text, version, found = container.read(tmp_path / "file")
    assert (text, version) == ("text", 1)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].shape == array.shape


# --- damaged and foreign files -------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    model("features, named").save(path)
    return path


def refused(path, match):
    for read in (morforest.load, morforest.inspect):
        with pytest.raises(ValueError, match=match) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_a_flipped_bit_anywhere_is_refused(saved):
    data = saved.read_bytes()
    random = np.random.default_rng(0)
    header = 8 + int.from_bytes(data[:8], "little")
    places = {*range(60), *random.integers(0, len(data), 300), *range(header - 20, header + 20)}
    places |= {len(data) - 1, *range(data.index(b"sha256"), data.index(b"sha256") + 80)}
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << random.integers(8)
        saved.write_bytes(damaged)
        for read in (morforest.load, morforest.inspect):
            with pytest.raises(ValueError, match=r"is damaged|is no model file|later one"):
                read(saved)
    saved.write_bytes(data)
    morforest.load(saved)


def test_truncated_and_longer_files_are_refused(saved):
    data = saved.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    for length in (header + 10, header, len(data) - 1):
        saved.write_bytes(data[:length])
        refused(saved, "is damaged: its arrays take")
    saved.write_bytes(data[: header - 1])
    refused(saved, "is damaged: it ends within its header")
    saved.write_bytes(data[:5])
    refused(saved, "is no model file")
    saved.write_bytes(b"")
    refused(saved, "is damaged: it is empty")
    saved.write_bytes(data + b"\0")
    refused(saved, "is damaged: its arrays take")


def test_foreign_files_are_named(tmp_path):
    path = tmp_path / "file"
    pickle.dump(model("patches"), path.open("wb"))
    refused(path, "looks like a pickle")
    np.savez(tmp_path / "file.npz", X=np.ones(3))
    refused(tmp_path / "file.npz", "is no model file")
    path.write_text("label,x\n" * 100)
    refused(path, "is no model file")
    header = b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"3")
    refused(path, "safetensors file of something else")
    with pytest.raises(FileNotFoundError):
        morforest.load(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        morforest.inspect(tmp_path)


def test_later_formats_are_refused(saved, monkeypatch):
    monkeypatch.setattr(container, "VERSION", 2)
    model("patches").save(saved)
    monkeypatch.undo()
    refused(saved, "model file of format 2, and this version of morforest reads formats up to 1")


HEADERS = {
    "a hole": (lambda h: h["a"].update(data_offsets=[8, 16], shape=[1]), "does not begin where"),
    "an overlap": (lambda h: h["b"].update(data_offsets=[8, 24]), "b does not begin where"),
    "a type": (lambda h: h["a"].update(dtype="F128"), "nothing sensible of a"),
    "a shape": (lambda h: h["a"].update(shape=[3]), "nothing sensible of a"),
    "a negative length": (lambda h: h["a"].update(shape=[-1, -2]), "nothing sensible of a"),
    "a flag": (lambda h: h["a"].update(shape=[True, 2]), "nothing sensible of a"),
    "a huge length": (lambda h: h["a"].update(shape=[0, 10**30]), "nothing sensible of a"),
    "no shape": (lambda h: h["a"].pop("shape"), "nothing sensible of a"),
    "a list": (lambda h: h.update(a=[1, 2]), "nothing sensible of a"),
    "no checksum": (lambda h: h["__metadata__"].pop("sha256"), "its checksum is missing"),
    "a version": (lambda h: h["__metadata__"].update(format_version="x"), "version of its format"),
    "no version": (lambda h: h["__metadata__"].pop("format_version"), "version of its format"),
    "nothing": (lambda h: h.clear(), "something else"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_that_make_no_sense_are_refused(case, tmp_path):
    change, message = HEADERS[case]
    path = tmp_path / "file"
    container.write(path, "{}", {"a": np.arange(2.0), "b": np.arange(2)})
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])
    with pytest.raises(ValueError, match=message):
        container.read(path)


def test_flags_are_zero_or_one(tmp_path):
    path = tmp_path / "file"
    container.write(path, "{}", {"a": np.array([2, 0], dtype=np.uint8)})
    data = path.read_bytes().replace(b'"U8"', b'"BOOL"')
    size = int.from_bytes(data[:8], "little") + 2
    data = size.to_bytes(8, "little") + data[8:]
    digest = json.loads(data[8 : 8 + size])["__metadata__"]["sha256"].encode()
    right = hashlib.sha256(data.replace(digest, b"0" * 64)).hexdigest().encode()
    path.write_bytes(data.replace(digest, right))
    with pytest.raises(ValueError, match="values other than true and false"):
        container.read(path)


STATES = {
    "a class of another library": (lambda t: t.update({"class": "Popen"}), "'Popen' is no class"),
    "a class that is no model": (lambda t: t.update({"class": "os.system"}), "is no class"),
    "another class": (lambda t: t.update({"class": "Patch"}), "has no parameter"),
    "a class inside": (
        lambda t: t["state"].update(dictionary={"morforest:eval": {"x": "1"}}),
        "'eval' is no class",
    ),
    "a parameter of nobody": (
        lambda t: t["state"].update(dictionary={"morforest:Axis": {"x": 1}}),
        "Axis has no parameter 'x'",
    ),
    "a method": (lambda t: t["state"].update(predict=1), "predict is a method"),
    "an array of nobody": (
        lambda t: t["state"].update(classes_={"@tensor": "nowhere"}),
        "KeyError: 'nowhere'",
    ),
    "a value of nobody": (lambda t: t["state"].update(classes_={"@code": "1"}), "no kind of value"),
    "a type": (lambda t: t["state"].update(classes_={"@dtype": "O"}), "no kind of value"),
    "no state": (lambda t: t.pop("state"), "KeyError"),
    "a list": (lambda t: t.update(state=[]), "not a dict"),
    "no classes": (lambda t: t["state"].pop("classes_"), "classes_"),
    "deep lists": (
        lambda t: t["state"].update(n_jobs=json.loads("[" * 700 + "]" * 700)),
        "Recursion|n_jobs",
    ),
    "words": (
        lambda t: t["state"].update(classes_={"@words": [1, 2], "shape": [2]}),
        "an array of words",
    ),
    "packed": (
        lambda t: t["state"].update(
            classes_={"@tensor": "forest.split", "bits": 2, "shape": [10**9]}
        ),
        "do not fit their shape",
    ),
    "a random state": (
        lambda t: t["state"].update(
            random_state={"@random_state": [{"@tensor": "forest.split"}, 10**6, 0, 0.0]}
        ),
        "a random state is not one",
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_models_that_make_no_sense_are_refused(case, saved):
    change, message = STATES[case]
    changed(saved, change)
    with pytest.raises(ValueError, match=message) as caught:
        morforest.load(saved)
    assert str(caught.value).startswith(f"{saved} is damaged: ")


@pytest.mark.parametrize("name", ["features, named", "kept samples", "ridge"])
@pytest.mark.filterwarnings("ignore")
def test_changed_models_are_refused_or_work(name, tmp_path):
    """The checksum does not tell who wrote a file: what it holds is checked like a pickle."""
    path = tmp_path / "model"
    model(name).save(path)
    text, _, arrays = container.read(path)
    random, outcomes = np.random.default_rng(5), set()
    for _ in range(40):
        tree = json.loads(text)
        found = dict(arrays)
        if random.random() < 0.5:
            tree["state"] = damage.damage_value(tree["state"], random, [])
        else:
            some = sorted(found)[random.integers(len(found))]
            array = damage.damage_array(found[some], random, [])
            if not container.holds(array.dtype):
                continue
            found[some] = array
        try:
            container.write(path, json.dumps(tree, default=str), found)
            loaded = morforest.load(path)
        except ValueError as error:
            outcomes.add("refused" if " is damaged: " in str(error) else str(error))
            continue
        try:
            damage.use(loaded)
            outcomes.add("works")
        except NotFittedError:
            outcomes.add("unfitted")
    assert {"refused", "works"} <= outcomes <= {"refused", "works", "unfitted"}


# --- writing whole or not at all -----------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, _fail)
            with pytest.raises(OSError, match="no room"):
                model("patches").save(saved)
        assert saved.read_bytes() == before
        assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def _fail(*_):
    raise OSError(28, "no room")


LIMITED = """
import resource, signal, sys
import morforest
model = morforest.load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    model.save(sys.argv[1])
except OSError as error:
    print(error.errno)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX's")
def test_a_full_disk_leaves_the_old_file(saved):
    before = saved.read_bytes()
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, saved], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "27"  # EFBIG
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


KILLED = """
import os, sys, time
import morforest
model = morforest.load(sys.argv[1])
def slowly(file):
    print("written", flush=True)
    time.sleep(60)
os.fsync = slowly
model.set_params(verbose=1).save(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_a_killed_process_leaves_the_old_file(saved):
    before = saved.read_bytes()
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, saved], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline().strip() == "written"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert saved.read_bytes() == before
    morforest.load(saved)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and links are POSIX's")
def test_permissions_and_links_stay(saved, tmp_path):
    assert stat.S_IMODE(saved.stat().st_mode) == 0o666 & ~_mask()
    saved.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(saved)
    model("patches").save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(saved.stat().st_mode) == 0o640
    assert morforest.load(saved).n_features_in_ == 24


def _mask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
