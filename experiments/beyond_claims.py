"""Targets beyond the paper and whether they were met, and every loss to a peer.

Tables for docs/beyond.md and docs/choose.md, from the rows of the studies.
"""

import numpy as np

from experiments import (
    beyond,
    beyond_images,
    beyond_series,
    beyond_simulations,
    beyond_tables,
    beyond_volumes,
    eeg,
    realdata,
    simulations,
)
from experiments.claims import NO, YES, by_repeat, difference, verdict
from measuring import tables
from measuring.files import write_whole

STUDIES = {
    "images": beyond_images,
    "simulations": beyond_simulations,
    "series": beyond_series,
    "volumes": beyond_volumes,
    "tables": beyond_tables,
}
NOT_MEASURED = "not measured"
# The highest mean errors that meet a target: (study, data, n, classifier, target).
TARGETS = (
    ("images", "MNIST", 1000, "boosting image", 0.037),
    ("images", "MNIST", 10_000, "boosting image", 0.0135),
    ("images", "MNIST", 60_000, "boosting image", 0.0085),
    ("images", "MNIST", 1000, "boosting image + copies", 0.026),
    ("images", "MNIST", 10_000, "boosting image + copies", 0.011),
    ("images", "MNIST", 60_000, "boosting image + copies", 0.0075),
    ("simulations", "A", 200, "forest series", 0.002),
    ("simulations", "A", 200, "boosting series", 0.002),
    ("simulations", "B", 200, "forest image", 0.0005),
    ("simulations", "C", 200, "forest auto", 0.145),
    ("simulations", "D", 200, "forest series", 0.06),
    ("simulations", "D", 200, "boosting series", 0.06),
)
NETWORK = "ConvNet"
NEAR_MINIROCKET = 0.015
MORE_AUC = 0.03


def load(csvs):
    return {name: module.rows(csvs) for name, module in STUDIES.items()}


def write(csvs):
    """Write all tables, if there are rows."""
    studies = load(csvs)
    if not any(studies.values()):
        return
    wider = with_eeg(studies, csvs)
    for name, (header, lines) in {
        "beyond-claims": (["claim", "target", "found", "met"], claims(studies)),
        "beyond-contests": contests(wider),
        "beyond-losses": lost(wider),
        "choose-errors": choice(wider, "loss", tables.rate),
        "choose-seconds": choice(wider, "train_seconds", "{:.3g}".format),
        "best": plain_and_best(wider),
    }.items():
        write_whole(csvs / f"{name}.md", tables.markdown(header, lines))


def with_eeg(studies, csvs):
    """Return the studies with the finger movements of `make eeg`, whose peers are stronger.

    They have the same split as those of the series. What both have measured is not added.
    """
    found = studies["series"]
    known = {row["classifier"] for row in found if row["data"] == "finger"}
    more = [
        {
            **row,
            "data": "finger",
            "repeat": row["fold"],
            "n": row["train_rows"],
            "loss": 1 - row["accuracy"],
        }
        for row in eeg.rows(csvs)
        if row["set"] == "finger" and row["classifier"] not in known
    ]
    return {**studies, "series": found + more} if known else studies


# --- claims ---------------------------------------------------------------------------------------


def claims(studies):
    return [
        *(at_most(studies, *target) for target in TARGETS),
        *against_network(studies["images"]),
        *against_minirocket(studies["series"]),
        *more_auc(studies["volumes"]),
        behind_rival(studies["tables"]),
    ]


def claim(title, target, values, excess):
    """Return a line of the table; `excess` should be at or below zero on average."""
    if not len(values):
        return [title, target, NOT_MEASURED, ""]
    return [title, target, tables.rate_and_error(list(values)), verdict(np.array(excess))]


def at_most(studies, study, data, n, classifier, target):
    values = list(by_repeat(studies[study], data, n, classifier, "loss").values())
    title = f"{data}, n = {n:,}: error of *{classifier}*"
    return claim(title, f"at most {tables.rate(target)}", values, np.array(values) - target)


def paired(a, b):
    """Return the differences over the repeats that both have, which have the same samples."""
    return np.array([a[repeat] - b[repeat] for repeat in sorted(a.keys() & b.keys())])


def best(rows, data, n, wanted):
    """Return the classifier with the lowest mean loss at a place, and its losses."""
    at = {
        name: by_repeat(rows, data, n, name, "loss")
        for name in sorted({row["classifier"] for row in rows})
        if wanted(name)
    }
    at = {name: losses for name, losses in at.items() if losses}
    if not at:
        return None, {}
    name = min(at, key=lambda name: np.mean(list(at[name].values())))
    return name, at[name]


def against_network(rows):
    """Compare the best of ours at each size with the network, on the same images."""
    lines = []
    for n in sorted({row["n"] for row in rows if beyond.ours(row["classifier"])}):
        name, ours = best(rows, "MNIST", n, beyond.ours)
        network = by_repeat(rows, "MNIST", n, NETWORK, "loss")
        excess = paired(ours, network)
        target = f"below {NETWORK}"
        if len(excess):
            target += f", {tables.rate_and_error(list(network.values()))}"
        lines.append(
            claim(
                f"MNIST, n = {n:,}: error of the best of ours, *{name}*",
                target,
                list(ours.values()) if len(excess) else [],
                excess,
            )
        )
    return lines


def against_minirocket(rows):
    ours = {name: beyond_series.means(rows, name) for name in beyond_series.OURS}
    ours = {name: means for name, means in ours.items() if means}
    peer = beyond_series.means(rows, beyond_series.MINIROCKET) if ours else {}
    title = "series: mean error over the sets of"
    if not peer:
        return [
            [f"{title} the best of ours", "below MiniRocket", NOT_MEASURED, ""],
            [f"{title} *forest series*", "near MiniRocket", NOT_MEASURED, ""],
        ]
    text = f"MiniRocket, {tables.rate_and_error(list(peer.values()))}"
    name = min(ours, key=lambda name: np.mean(list(ours[name].values())))
    lines = [
        claim(
            f"{title} the best of ours, *{name}*",
            f"below {text}",
            ours[name].values(),
            paired(ours[name], peer),
        )
    ]
    if "forest series" in ours:
        near = ours["forest series"]
        lines.append(
            claim(
                f"{title} *forest series*",
                f"at most {tables.rate(NEAR_MINIROCKET)} above {text}",
                near.values(),
                paired(near, peer) - NEAR_MINIROCKET,
            )
        )
    return lines


def more_auc(rows):
    lines = []
    sizes = {row["n"] for row in rows} or {0}
    for name in ("forest patch", "forest image"):
        ours, peer = (
            by_repeat(rows, realdata.ADRENAL, max(sizes), who, "auc") for who in (name, beyond.PEER)
        )
        excess = MORE_AUC - paired(ours, peer)
        target = f"{tables.rate(MORE_AUC)} above {beyond.PEER}"
        if len(excess):
            target += f", {tables.rate_and_error(list(peer.values()))}"
        values = list(ours.values()) if len(excess) else []
        lines.append(claim(f"volumes: AUC of *{name}*", target, values, excess))
    return lines


def behind_rival(rows):
    """Return one line for all kinds of tables; it names those that miss the target."""
    title = f"tables: kinds on which *{beyond_tables.OURS}* is behind {beyond_tables.RIVAL}"
    target = f"none by more than {beyond_tables.MARGIN} points"
    gaps = {data: beyond_tables.ahead(rows, data) for data in beyond_tables.KINDS}
    gaps = {data: gap for data, gap in gaps.items() if len(gap)}
    if not gaps:
        return [title, target, NOT_MEASURED, ""]
    missed = [
        f"{data} ({np.mean(gap):+.2f})"
        for data, gap in gaps.items()
        if np.mean(gap) < -beyond_tables.MARGIN
    ]
    found = f"{len(missed)} of {len(gaps)}" + (f": {', '.join(missed)}" if missed else "")
    return [title, target, found, NO if missed else YES]


# --- peers ----------------------------------------------------------------------------------------


def places(rows):
    """Return the places, (data, n), where any of ours was measured."""
    return sorted({(row["data"], row["n"]) for row in rows if beyond.ours(row["classifier"])})


def place_text(rows, data, n):
    sizes = {row["n"] for row in rows if row["data"] == data}
    return f"{data} {n:,}" if len(sizes) > 1 else data


def is_peer(name):
    return not beyond.ours(name)


def contests(studies):
    """Compare each of ours with the best peer of each place: how often, and where, it is above."""
    lines = []
    for study, rows in studies.items():
        names = dict.fromkeys(row["classifier"] for row in rows if beyond.ours(row["classifier"]))
        for name in sorted(names):
            counts, above = {YES: 0, NO: 0}, []
            for data, n in places(rows):
                _, peer = best(rows, data, n, is_peer)
                excess = paired(by_repeat(rows, data, n, name, "loss"), peer)
                if not len(excess):
                    continue
                met = np.mean(excess) <= 0
                counts[YES if met else NO] += 1
                if not met:
                    above.append(place_text(rows, data, n))
            if any(counts.values()):
                lines.append(
                    [study, name, sum(counts.values()), *counts.values(), ", ".join(above)]
                )
    return ["study", "of ours", "contests", "at or below", "above", "above on"], lines


def lost(studies):
    """List the places where even the best of ours is above the best peer."""
    lines = []
    for study, rows in studies.items():
        for data, n in places(rows):
            name, ours = best(rows, data, n, beyond.ours)
            rival, peer = best(rows, data, n, is_peer)
            excess = paired(ours, peer)
            if len(excess) and np.mean(excess) > 0:
                texts = [
                    f"{who} {tables.rate_and_error(list(losses.values()))}"
                    for who, losses in ((name, ours), (rival, peer))
                ]
                lines.append([study, data, f"{n:,}", *texts, difference(excess)])
    lines = lines or [["none", *[""] * 5]]
    return ["study", "data", "n", "best of ours", "best peer", "difference"], lines


# --- to choose by ---------------------------------------------------------------------------------

ONE_CHANNEL = ("ArrowHead", "CBF", "Coffee", "ECG200", "GunPoint", "ItalyPowerDemand")
CHANNELS = tuple(name for name in beyond_series.SETS if name not in ONE_CHANNEL)
GENERATED = {
    measure: tuple(data for data, kind in beyond_tables.KINDS.items() if kind.measure == measure)
    for measure in (beyond_tables.ACCURACY, beyond_tables.R2)
}
# The lines: title, study, data that it shows the mean of, and n where there are several.
CHOICES = (
    *((f"images: MNIST, n = {n:,}", "images", ("MNIST",), n) for n in (100, 1000, 10_000, 60_000)),
    (f"series of one channel, mean of {len(ONE_CHANNEL)} sets", "series", ONE_CHANNEL, None),
    (f"series of several channels, mean of {len(CHANNELS)} sets", "series", CHANNELS, None),
    ("EEG: finger movements", "series", ("finger",), None),
    ("a segment anywhere on a circle: A, n = 200", "simulations", ("A",), 200),
    ("bars anywhere in an image: B, n = 50", "simulations", ("B",), 50),
    ("an impulse in one place: C, n = 200", "simulations", ("C",), 200),
    ("coupled oscillations: D, n = 200", "simulations", ("D",), 200),
    ("volumes: adrenal glands, 1 - AUC", "volumes", (realdata.ADRENAL,), None),
    (
        f"tables, classes, mean of {len(GENERATED[beyond_tables.ACCURACY])} kinds",
        "tables",
        GENERATED[beyond_tables.ACCURACY],
        None,
    ),
    (
        f"tables, numbers, 1 - R², mean of {len(GENERATED[beyond_tables.R2])} kinds",
        "tables",
        GENERATED[beyond_tables.R2],
        None,
    ),
)
PAPERS = ("MORF", "SPORF", "RF", simulations.WRAPPING, simulations.SHORT)  # grown by this library
PAPERS_SETTING = "MORF, the paper's setting"
PATCHES = {"MORF": PAPERS_SETTING, "forest patch": "MORF, all defaults"}
# A column shows the first of its estimators that a study has.
COLUMNS = {
    "random forest": (beyond.PEER,),
    PAPERS_SETTING: ("MORF",),
    "forest, patches": ("forest patch",),
    'forest, "image" or "series"': ("forest image", "forest series"),
    'forest, "series-pooled"': ("forest series-pooled",),
    'forest, "auto"': ("forest auto",),
    "boosting": ("boosting image", "boosting series", "boosting auto", "boosting"),
    "boosting, copies": ("boosting image + copies",),
    "ridge": ("ridge",),
    'ridge, "eeg"': ("ridge eeg",),
}


def choice(studies, measure, text):
    """Return a table of problems by estimators: means over data and repeats, the lowest in bold."""
    lines = []
    for title, study, data, n in CHOICES:
        rows = [row for row in studies[study] if row["data"] in data and n in (None, row["n"])]
        losses = means_over(rows, data, "loss")
        if not any(map(beyond.ours, losses)):
            continue
        chosen = [
            next((name for name in names if name in losses), None) for names in COLUMNS.values()
        ]
        others = [name for name in losses if is_peer(name) and name not in chosen]
        values = means_over(rows, data, measure)
        cells = [text(values[name]) if name else "" for name in chosen]
        if others:
            chosen.append(min(others, key=losses.get))
            cells.append(f"{text(values[chosen[-1]])} ({chosen[-1]})")
        else:
            chosen.append(None)
            cells.append("")
        if measure == "loss":
            lowest = min(losses[name] for name in chosen if name)
            cells = [
                f"**{cell}**" if name and losses[name] == lowest else cell
                for name, cell in zip(chosen, cells, strict=True)
            ]
        lines.append([title, *cells])
    return ["", *COLUMNS, "best other"], lines


def plain_and_best(studies):
    """Compare patches, in the paper's setting and with defaults, to the best of ours and others.

    Lines without patches are left out. A cell is empty where a setting was not measured.
    """
    lines = []
    for title, study, data, n in CHOICES:
        rows = [row for row in studies[study] if row["data"] in data and n in (None, row["n"])]
        losses = means_over(rows, data, "loss")
        ours = [name for name in losses if beyond.ours(name)]
        if not any(name in losses for name in PATCHES) or set(ours) <= set(PATCHES):
            continue
        others = [name for name in losses if is_peer(name) and name not in PAPERS]
        shown = (beyond.PEER, *PATCHES)
        cells = [tables.rate(losses[name]) if name in losses else "" for name in shown]
        for names in (ours, others):
            name = min(names, key=losses.get, default=None)
            cells.append(f"{tables.rate(losses[name])} ({name})" if name else "")
        lines.append([title, *cells])
    return ["", "random forest", *PATCHES.values(), "best of ours", "best other library"], lines


def means_over(rows, data, measure):
    """Return for each classifier with rows for all of the data the mean of its means on each."""
    groups = tables.group(rows, "classifier", "data")
    return {
        name: float(np.mean([np.mean([row[measure] for row in groups[name, one]]) for one in data]))
        for name in dict.fromkeys(row["classifier"] for row in rows)
        if all((name, one) in groups for one in data)
    }
