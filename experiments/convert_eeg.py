"""Readers of the EEG recordings of `make eeg`, for the command in convert.py.

Each takes the files of a source and returns trials of shape (n, channels, time) in microvolts, with
the labels, and who was recorded when. Filters run forwards and backwards over the whole recording.
"""

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np
from scipy import signal
from scipy.io import loadmat

ORDER = 4  # of the Butterworth filters
MICRO = 1e6
P300 = {"band": (0.5, 15), "sfreq": 250, "steps": 200, "every": 5}
P300_CHANNELS = ("Fz", "Cz", "P3", "Pz", "P4", "PO7", "Oz", "PO8")  # the usual ones of the maker
P300_BLOCKS = 5  # of 240 flashes each
LEFT_RIGHT = {"band": (1, 30), "sfreq": 256, "steps": 232, "every": 2}
LEFT_RIGHT_RUNS = ("16.11.50", "16.16.09", "16.21.42", "16.25.35", "16.29.10")
BEFORE = 26  # samples, a tenth of a second
LARGEST = 200  # microvolts; trials beyond are left out
EXO = {"band": (5, 45), "sfreq": 256, "steps": 768, "every": 2}
DELAY = 512  # two seconds
# By subject. Left out are those that the makers exclude (one of subject 8, two of 10, two of 11), a
# copy of subject 3's under subject 7, and two of the five of subject 12.
SESSIONS = {
    1: ("2012.07.06-19.02.16", "2012.07.06-19.06.14"),
    2: ("2012.07.19-17.36.23", "2012.07.19-17.41.14"),
    3: ("2012.07.11-15.25.23", "2012.07.11-15.33.08"),
    4: ("2012.07.18-17.52.30", "2012.07.18-17.56.53"),
    5: ("2012.07.19-11.24.02", "2012.07.19-11.28.18"),
    6: ("2012.07.20-12.20.55", "2012.07.20-12.26.47"),
    7: ("2012.07.18-09.15.30", "2012.07.18-09.21.13"),
    8: ("2013.04.06-16.29.18", "2013.04.06-16.35.05"),
    9: ("2013.04.09-17.32.29", "2013.04.09-17.39.37"),
    10: (
        "2014.02.26-15.32.36",
        "2014.02.26-15.40.22",
        "2014.02.26-16.18.11",
        "2014.02.26-16.25.45",
    ),
    11: ("2014.02.24-18.15.11", "2014.02.24-18.23.37"),
    12: ("2014.03.10-19.47.49", "2014.03.10-20.26.46", "2014.03.10-20.41.35"),
}


def trials(recording, starts, band, sfreq, steps, every):
    """Filter a recording (time, channels); return windows of it, of every so many samples."""
    sos = signal.butter(ORDER, band, "band", fs=sfreq, output="sos")
    filtered = signal.sosfiltfilt(sos, recording, axis=0)
    return np.stack([filtered[start : start + steps : every].T for start in starts])


def rate(given):
    return np.array(given["sfreq"] / given["every"])


def p300(files):
    """0.8 s after each flash of five people who spell; the label says whether it was the target."""
    X, y = [], []
    for person in range(1, 6):
        stored = loadmat(io.BytesIO(files.read(f"data/S{person}.mat")))
        marks = stored["trig"].ravel()
        starts = np.flatnonzero(marks)
        X.append(trials(stored["y"], starts, **P300))
        y.append(marks[starts] > 0)
    flashes = len(y[0])
    return {
        "X": np.concatenate(X).astype(np.float32),
        "y": np.concatenate(y).astype(np.int64),
        "sfreq": rate(P300),
        "channels": np.array(P300_CHANNELS),
        "subject": np.repeat(np.arange(1, 6), flashes),
        "block": np.tile(np.repeat(np.arange(P300_BLOCKS), flashes // P300_BLOCKS), 5),
    }


def left_right(files):
    """From 0.1 s before to 0.8 s after a stimulus in the left or the right visual field."""
    X, y, block = [], [], []
    for run, when in enumerate(LEFT_RIGHT_RUNS):
        name = f"left-right/subject1/session1/data_2017-01-27-{when}.csv"
        lines = files.text(name).strip().split("\n")
        channels = np.array(lines[0].split(",")[1:5])
        table = np.array([line.split(",") for line in lines[1:]], dtype=np.float64)
        marks = table[:, -1].astype(np.int64)
        starts = np.flatnonzero(marks) - BEFORE
        labels = marks[marks > 0]
        inside = (starts >= 0) & (starts + LEFT_RIGHT["steps"] <= len(table))
        found = trials(table[:, 1:5], starts[inside], **LEFT_RIGHT)
        small = np.abs(found).max(axis=(1, 2)) < LARGEST
        X.append(found[small])
        y.append(labels[inside][small] - 1)
        block.append(np.full(small.sum(), run))
    return {
        "X": np.concatenate(X).astype(np.float32),
        "y": np.concatenate(y),
        "sfreq": rate(LEFT_RIGHT),
        "channels": channels,
        "block": np.concatenate(block),
    }


def n400(files):
    """Pairs of words, related or not, as the epochs are stored."""
    import mne

    with on_disk(files.read("posthoc/subject04-epo.fif"), "words-epo.fif") as path:
        epochs = mne.read_epochs(path, verbose="error")
    return {
        "X": (MICRO * epochs.get_data()).astype(np.float32),
        "y": (epochs.events[:, 2] == epochs.event_id["unrelated"]).astype(np.int64),
        "sfreq": np.array(epochs.info["sfreq"]),
        "channels": np.array(epochs.ch_names),
    }


def ssvep_exo(files):
    """From 2 to 5 s of each trial: at rest, or looking at a light of 13, 21 or 17 Hz."""
    X, y, subject, block = [], [], [], []
    for person, sessions in SESSIONS.items():
        for session, when in enumerate(sessions):
            stem = f"subject{person:02}/record-[{when}]"
            signals, channels, events = exo_session(files, stem)
            X.append(trials(signals, events[:, 0] + DELAY, **EXO))
            y.append(events[:, 1])
            subject.append(np.full(len(events), person))
            block.append(np.full(len(events), session))
    return {
        "X": (MICRO * np.concatenate(X)).astype(np.float32),
        "y": np.concatenate(y),
        "sfreq": rate(EXO),
        "channels": channels,
        "subject": np.concatenate(subject),
        "block": np.concatenate(block),
    }


@contextlib.contextmanager
def on_disk(content, name):
    """Give a content a path, which MNE asks for."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


def exo_session(files, stem):
    """Return the signals (time, channel), their names, and events: where, and which class."""
    import mne

    with on_disk(files.read(f"{stem}_raw.fif"), "session_raw.fif") as path:
        raw = mne.io.read_raw_fif(path, preload=True, verbose="error")
    with on_disk(files.read(f"{stem}-eve.fif"), "session-eve.fif") as path:
        events = mne.read_events(path, verbose="error")
    where = events[:, 0] - raw.first_samp
    return raw.get_data()[:8].T, np.array(raw.ch_names[:8]), np.stack([where, events[:, 2]], axis=1)
