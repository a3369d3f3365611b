"""How much is measured: in full, quickly, and just enough to try the suite itself.

A full run takes about an hour on two cores, a quick one some minutes.
"""

import dataclasses

from benchmarks import instructions

MORF, SPORF, RF = "morforest MORF", "morforest SPORF", "morforest RF"
SKLEARN_RF, SKLEARN_ET, SKLEARN_HGB = "scikit-learn RF", "scikit-learn ET", "scikit-learn HGB"
TREEPLE_PATCH, TREEPLE_OBLIQUE = "treeple patch", "treeple oblique"
YDF_OBLIQUE, YDF_RF = "ydf oblique", "ydf RF"
XGBOOST, LIGHTGBM = "xgboost", "lightgbm"
# Forests that know the training samples of their leaves.
WEIGHTS, QUANTILE_FOREST, BY_HAND = "morforest kept", "quantile-forest", "scikit-learn by hand"

# Sparse sums of features that a network relates, with the sizes and signs of SPORF.
GRAPH, WALK, SIMILARITY = "morforest graph", "morforest walk", "morforest similarity"

OURS = (MORF, SPORF, RF)
NETWORK_FORESTS = (SPORF, GRAPH, WALK, SIMILARITY)
IMAGE_FORESTS = (MORF, RF, TREEPLE_PATCH, SKLEARN_RF, SKLEARN_ET, YDF_OBLIQUE, YDF_RF)
TABLE_FORESTS = (SPORF, RF, TREEPLE_OBLIQUE, SKLEARN_RF, SKLEARN_ET, YDF_OBLIQUE, YDF_RF)
BOOSTING = (XGBOOST, LIGHTGBM, SKLEARN_HGB)


@dataclasses.dataclass(frozen=True)
class Plan:
    trees: int
    repeats: int  # our models, and all forests up to `slow_rows` rows; others have one
    short_repeats: int  # the same up to `short_rows` rows, because short fits vary most
    short_rows: int
    slow_rows: int
    # fit: number of training images
    forest_rows: tuple
    ydf_rf_rows: int  # at most; it takes as long as the oblique one, which is the closer peer
    boosting_rows: tuple
    hgb_rows: tuple
    own_rows: tuple  # more than the data has, which is repeated
    two_thread_rows: tuple  # all models; at the largest number of rows only fast ones
    # area
    area_rows: int
    area_sides: tuple
    # features, classes, tables
    table_rows: int
    features: tuple
    classes: tuple
    large_table: str
    # small, floats, regression
    small_trees: int
    impulse_rows: int
    eeg_rows: int
    series_rows: int
    friedman: str
    networks: tuple
    weights: str
    weights_trees: int
    # predict, size, memory, import
    held_rows: int
    batches: tuple
    predict_rounds: int
    memory_rows: tuple  # all forests; at the largest number of rows only ours and scikit-learn's
    size_rows: tuple  # all forests; at the largest number of rows only those that grow quickly
    imports: int
    architectures: tuple  # the instruction sets to compile for

    def repeats_of(self, model, rows):
        if rows in self.own_rows:
            return 1
        fast = model in (*OURS, *NETWORK_FORESTS) or (
            rows <= self.slow_rows and model not in BOOSTING
        )
        repeats = self.short_repeats if rows <= self.short_rows else self.repeats
        return repeats if fast else 1


FULL = Plan(
    trees=100,
    repeats=3,
    short_repeats=9,
    short_rows=500,
    slow_rows=2000,
    forest_rows=(500, 1000, 2000, 5000, 10_000, 20_000, 60_000),
    ydf_rf_rows=10_000,
    boosting_rows=(1000, 5000, 60_000),
    hgb_rows=(1000,),
    own_rows=(120_000, 240_000),
    two_thread_rows=(5000, 60_000),
    area_rows=5000,
    area_sides=(2, 3, 5, 7, 10, 14),
    table_rows=5000,
    features=(10, 30, 100, 300, 1000),
    classes=(2, 5, 10, 20, 50, 100),
    large_table="table-100000x50-2",
    small_trees=500,
    impulse_rows=2000,
    eeg_rows=2000,
    series_rows=1000,
    friedman="friedman-20000x50",
    networks=("network-2000x1000", "network-10000x1000", "network-500x100000"),
    weights="friedman-100000x10",
    weights_trees=500,
    held_rows=60_000,
    batches=(1, 10, 100, 1000, 10_000),
    predict_rounds=5,
    memory_rows=(5000, 60_000),
    size_rows=(1000, 60_000),
    imports=15,
    architectures=instructions.ARCHITECTURES,
)

QUICK = dataclasses.replace(
    FULL,
    repeats=2,
    short_repeats=2,
    short_rows=500,
    slow_rows=0,
    forest_rows=(500, 1000, 5000),
    ydf_rf_rows=1000,
    boosting_rows=(500,),
    hgb_rows=(),
    own_rows=(10_000,),
    two_thread_rows=(5000,),
    area_rows=1000,
    area_sides=(2, 14),
    table_rows=1000,
    features=(10, 100),
    classes=(2, 10, 50),
    large_table="table-5000x50-2",
    small_trees=100,
    impulse_rows=500,
    eeg_rows=500,
    series_rows=200,
    friedman="friedman-2000x50",
    networks=("network-1000x200", "network-200x10000"),
    weights="friedman-5000x10",
    weights_trees=100,
    held_rows=5000,
    predict_rounds=1,
    memory_rows=(5000,),
    size_rows=(500, 5000),
    imports=5,
    architectures=instructions.ARCHITECTURES[-1:],
)

TINY = dataclasses.replace(
    QUICK,
    trees=10,
    forest_rows=(500, 1000),
    own_rows=(2000,),
    two_thread_rows=(500, 1000),
    area_rows=500,
    features=(10, 100),
    classes=(2, 10),
    table_rows=500,
    large_table="table-2000x50-2",
    small_trees=10,
    weights="friedman-1000x10",
    weights_trees=10,
    held_rows=1000,
    batches=(1, 100, 10_000),
    memory_rows=(500, 1000),
    size_rows=(500, 1000),
    imports=2,
)
