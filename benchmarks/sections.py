"""What is measured, section by section.

In each section every model has its turn before the next repeat begins, so that a slow minute of
the machine affects all of them. All rows of all sections have the same columns.
"""

import dataclasses
import math
import subprocess
import sys
import time

from benchmarks import data, instructions, results, weights
from benchmarks.client import WorkerError
from benchmarks.models import library_of
from benchmarks.plan import (
    BOOSTING,
    IMAGE_FORESTS,
    LIGHTGBM,
    MORF,
    NETWORK_FORESTS,
    RF,
    SKLEARN_ET,
    SKLEARN_HGB,
    SKLEARN_RF,
    TABLE_FORESTS,
    TREEPLE_PATCH,
    XGBOOST,
    YDF_OBLIQUE,
    YDF_RF,
)

IMAGE_SHAPE = (28, 28)
SMALLEST, LARGEST = (2, 2), (2, 5)


@dataclasses.dataclass(frozen=True)
class Work:
    """Something that several models are asked to do."""

    data: str
    path: str
    rows: int
    shape: tuple
    classes: int  # 0 in regression
    trees: int
    candidates: int
    smallest: tuple = ()
    largest: tuple = ()
    boundary: str = "zero"  # of our patches; treeple's are always inside
    leaf: int = 1  # fewest samples of a leaf

    def request(self):
        """Return the part that the worker needs."""
        work = {
            "task": "classification" if self.classes else "regression",
            "shape": self.shape,
            "trees": self.trees,
            "candidates": self.candidates,
            "smallest": self.smallest,
            "largest": self.largest,
            "boundary": self.boundary,
            "leaf": self.leaf,
        }
        return {"path": self.path, "rows": self.rows, "work": work}

    def columns(self):
        sides = ["x".join(map(str, size)) for size in (self.smallest, self.largest)]
        return {
            "data": self.data,
            "rows": self.rows,
            "features": math.prod(self.shape),
            "classes": self.classes,
            "trees": self.trees,
            "candidates": self.candidates,
            "patches": " to ".join(sides) if self.smallest else "",
            "boundary": self.boundary if self.smallest else "",
        }


class Bench:
    """A run: its workers, its plan, its images, its clock."""

    def __init__(self, clients, plan, images, folder, facts):
        self.clients = clients
        self.plan = plan
        self.images_name, self.images_path = images
        self.folder = folder
        self.facts = facts
        self._start = time.monotonic()

    def say(self, text):
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        print(f"[{minutes:3d}:{seconds:02d}] {text}", file=sys.stderr, flush=True)

    def sheet(self, name):
        return results.Sheet(self.folder, name, self.facts)

    def images(self, rows, **changes):
        """Return the work of growing on images, with narrow patches but for the `changes`."""
        work = Work(
            data=self.images_name,
            path=str(self.images_path),
            rows=rows,
            shape=IMAGE_SHAPE,
            classes=10,
            trees=self.plan.trees,
            candidates=28,  # the square root of 784
            smallest=SMALLEST,
            largest=LARGEST,
        )
        return dataclasses.replace(work, **changes)

    def generated(self, name, shape, classes, **changes):
        path = data.make(name)
        features = math.prod(shape)
        work = Work(
            data=name,
            path=str(path),
            rows=int(name.split("-")[1].split("x")[0]),
            shape=shape,
            classes=classes,
            trees=self.plan.trees,
            candidates=max(1, math.isqrt(features)),
        )
        return dataclasses.replace(work, **changes)

    def present(self, models):
        return [model for model in models if library_of(model) in self.clients.pythons]

    def ask(self, client, command, **arguments):
        """Return the worker's answer, or None if it failed, which is reported."""
        try:
            return client(command, **arguments)
        except WorkerError as error:
            self.say(f"FAILED, left out here: {error}")
            self.clients.drop(client)
            return None

    def fits(self, sheet, work, models, threads=(1,), hold=()):
        """Time the fit of each model for each number of threads, in turns, and score it."""
        repeats = {
            (model, count): self.plan.repeats_of(model, work.rows)
            for model in self.present(models)
            for count in threads
        }
        done = dict.fromkeys(repeats, 0)
        for repeat, (model, count) in schedule(repeats):
            seed = done[model, count]
            done[model, count] += 1
            client = self.clients.get(library_of(model), count)
            fitted = self.ask(
                client,
                "fit",
                model=model,
                threads=count,
                seed=seed,
                hold=seed == 0 and model in hold,
                **work.request(),
            )
            if fitted is None:
                continue
            add(sheet, client, model, work, count, repeat, **fitted)
            self.say(
                f"{sheet.name} {work.data} rows={work.rows} {work.columns()['patches']} "
                f"threads={count} {model} {seed + 1}/{repeats[model, count]}: "
                f"{fitted['cpu']:.2f} CPU-seconds, score {fitted['score']:.4f}"
            )


def schedule(repeats):
    """Yield pairs (repeat, what); what has fewer repeats is spread over them."""
    rounds = max(repeats.values(), default=0)
    for repeat in range(rounds):
        for place, (what, count) in enumerate(repeats.items()):
            if (repeat - place) % rounds < count or count == rounds:
                yield repeat, what


def add(sheet, client, model, work, threads, repeat, batch="", cpu="", wall="", score="", bytes=""):
    """Add one row, with the columns that all sections share."""
    sheet.add(
        **client.versions,
        model=model,
        **work.columns(),
        threads=threads,
        batch=batch,
        repeat=repeat,
        cpu_seconds=cpu,
        wall_seconds=wall,
        score=score,
        bytes=bytes,
    )


def image_forests(plan, rows):
    return tuple(m for m in IMAGE_FORESTS if m != YDF_RF or rows <= plan.ydf_rf_rows)


def fit(bench, sheet):
    """Measure growing on images against the number of images, with one thread and two."""
    plan = bench.plan
    for rows in plan.forest_rows + plan.own_rows:
        models = image_forests(plan, rows) if rows in plan.forest_rows else (MORF, RF)
        if rows in plan.boosting_rows:
            models += (XGBOOST, LIGHTGBM)
        if rows in plan.hgb_rows:
            models += (SKLEARN_HGB,)
        hold = models if rows == plan.held_rows else ()
        bench.fits(sheet, bench.images(rows), models, hold=hold)
    for rows in plan.two_thread_rows:
        largest = rows == max(plan.two_thread_rows)
        models = (MORF, RF, SKLEARN_RF) if largest else image_forests(plan, rows)
        if rows in plan.boosting_rows and not largest:
            models += (XGBOOST, LIGHTGBM)
        bench.fits(sheet, bench.images(rows), models, threads=(2,))
    bench.clients.close(threads=2)


def threads(bench, sheet):
    """Measure growing on all images by one thread and by two, in turns."""
    work = bench.images(max(bench.plan.two_thread_rows))
    bench.fits(sheet, work, (MORF, RF), threads=(1, 2))
    bench.clients.close(threads=2)


def area(bench, sheet):
    """Measure what larger patches cost."""
    for side in bench.plan.area_sides:
        work = bench.images(bench.plan.area_rows, largest=(side, side))
        bench.fits(sheet, work, (MORF, TREEPLE_PATCH))


def features(bench, sheet):
    """Measure growing on tables against the number of features."""
    for p in bench.plan.features:
        work = bench.generated(f"table-{bench.plan.table_rows}x{p}-2", (p,), 2)
        bench.fits(sheet, work, (*TABLE_FORESTS, *BOOSTING))


def classes(bench, sheet):
    """Measure growing on tables against the number of classes."""
    for k in bench.plan.classes:
        work = bench.generated(f"table-{bench.plan.table_rows}x50-{k}", (50,), k)
        bench.fits(sheet, work, TABLE_FORESTS)


def large_table(bench, sheet):
    """Measure growing on a table of many rows."""
    work = bench.generated(bench.plan.large_table, (50,), 2)
    bench.fits(sheet, work, (*TABLE_FORESTS, *BOOSTING))


def small(bench, sheet):
    """Measure growing many trees on few images."""
    work = bench.images(500, trees=bench.plan.small_trees)
    bench.fits(sheet, work, IMAGE_FORESTS)


def floats(bench, sheet):
    """Measure patches over floats: an impulse in noise, channels x time, long series."""
    plan = bench.plan
    for name, shape, candidates, smallest, largest in (
        (f"impulse-{plan.impulse_rows}", (1, 100), 30, (1, 2), (1, 12)),  # the paper's setting
        (f"eeg-{plan.eeg_rows}", (28, 50), 37, (1, 5), (4, 20)),
        (f"series-{plan.series_rows}", (1, 4000), 63, (1, 20), (1, 200)),
    ):
        work = bench.generated(
            name,
            shape,
            2,
            candidates=candidates,
            smallest=smallest,
            largest=largest,
            boundary="inside",  # the same patches as treeple draws
        )
        bench.fits(sheet, work, (MORF, RF, TREEPLE_PATCH, SKLEARN_RF, YDF_OBLIQUE))


def regression(bench, sheet):
    """Measure regression on a table."""
    work = bench.generated(bench.plan.friedman, (50,), 0, candidates=17)
    bench.fits(sheet, work, (RF, SKLEARN_RF, SKLEARN_ET, YDF_RF, *BOOSTING))


def graphs(bench, sheet):
    """Measure sums over connected sets beside sparse sums of as many features."""
    for name in bench.plan.networks:
        features = int(name.split("x")[1])
        bench.fits(sheet, bench.generated(name, (features,), 2), NETWORK_FORESTS)


def predict(bench, sheet):
    """Measure predict_proba against the size of the batch."""
    plan = bench.plan
    work = bench.images(plan.held_rows)
    models = image_forests(plan, plan.held_rows)
    if plan.held_rows in plan.boosting_rows:
        models += (XGBOOST, LIGHTGBM)
    keys = hold(bench, work, models)
    scores = {}
    for model, key in keys.items():
        client = bench.clients.get(library_of(model), 1)
        scores[model] = client("score", key=key, path=work.path)
    for repeat in range(plan.predict_rounds):
        for batch in plan.batches:
            for model, key in keys.items():
                client = bench.clients.get(library_of(model), 1)
                calls = max(1, min(40, 2000 // batch))
                seconds = client("predict", key=key, path=work.path, batch=batch, calls=calls)
                measured = {"batch": batch, "score": scores[model], **seconds}
                add(sheet, client, model, work, 1, repeat, **measured)
        bench.say(f"predict round {repeat + 1}/{plan.predict_rounds}")


def size(bench, sheet):
    """Measure the size of a saved model."""
    for rows in bench.plan.size_rows:
        work = bench.images(rows)
        models = IMAGE_FORESTS
        if rows == max(bench.plan.size_rows):  # treeple's pickle would take gigabytes
            models = (MORF, RF, SKLEARN_RF, SKLEARN_ET, YDF_OBLIQUE)
        for model, key in hold(bench, work, models).items():
            client = bench.clients.get(library_of(model), 1)
            count = client("size", key=key)
            add(sheet, client, model, work, 1, 0, bytes=count)
            bench.say(f"size rows={rows} {model}: {count / 1e6:.2f} MB")
    bench.clients.close()  # the models that were held take memory


def hold(bench, work, models):
    """Fit models unless their workers hold them, and return their keys."""
    keys = {}
    for model in bench.present(models):
        client = bench.clients.get(library_of(model), 1)
        request = {"model": model, "threads": 1, "seed": 0, **work.request()}
        bench.say(f"a model to measure: {model}, rows={work.rows}")
        key = bench.ask(client, "fit_unless_held", **request)
        if key is not None:
            keys[model] = key
    return keys


def memory(bench, sheet):
    """Measure the peak memory above the data during a fit, in fresh processes."""
    for rows in bench.plan.memory_rows:
        work = bench.images(rows)
        models = IMAGE_FORESTS
        if rows == max(bench.plan.memory_rows):
            models = (MORF, RF, SKLEARN_RF)
        for model in bench.present(models):
            client = bench.clients.fresh(library_of(model), 1)
            request = {"model": model, "threads": 1, "seed": 0, **work.request()}
            found = bench.ask(client, "peak_memory", **request)
            client.close()
            if found is None:
                continue
            if "impossible" in found:
                bench.say(f"memory cannot be measured here: {found['impossible']}")
                return
            add(sheet, client, model, work, 1, 0, **found)
            bench.say(f"memory rows={rows} {model}: {found['bytes'] / 1e6:.1f} MB")


def imports(bench, sheet):
    """Measure the import of the package beside that of scikit-learn's ensembles."""
    client = bench.clients.get("morforest", 1)
    program = (
        "import time; w, c = time.perf_counter(), time.process_time(); import {}; "
        "print(time.process_time() - c, time.perf_counter() - w)"
    )
    nothing = Work(data="", path="", rows=0, shape=(0,), classes=0, trees=0, candidates=0)
    for repeat in range(-1, bench.plan.imports):
        for module in ("sklearn.ensemble", "morforest"):
            command = [sys.executable, "-c", program.format(module)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            cpu, wall = map(float, output.split())
            if repeat >= 0:  # the first pair fills the caches of the disk
                name = f"import {module}"
                add(sheet, client, name, nothing, 1, repeat, cpu=cpu, wall=wall)
    bench.say("import: done")


def count_instructions(bench, sheet):
    """Count the instructions that the core executes on small, fixed works."""
    versions = bench.clients.get("morforest", 1).versions
    instructions.run(bench.say, sheet, versions, bench.plan.architectures)


SECTIONS = {
    "fit": fit,
    "threads": threads,
    "predict": predict,
    "size": size,
    "area": area,
    "features": features,
    "classes": classes,
    "large-table": large_table,
    "small": small,
    "floats": floats,
    "regression": regression,
    "graphs": graphs,
    "memory": memory,
    "import": imports,
    "weights": weights.measure,
    "instructions": count_instructions,
}
