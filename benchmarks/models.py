"""How each library is asked to do the same work, and the form in which it takes its data.

This module is imported in the environment of each library, so libraries are imported where they
are used.

A work is a dict with `task` (classification or regression), `trees`, `candidates` (per node) and,
where there are patches, `shape`, `smallest`, `largest` and `boundary`. All forests use bootstrap
samples, grow trees until their leaves are pure, and try `candidates` projections or features per
node. Exceptions are documented at the class.
"""

import pickle
import tempfile
from pathlib import Path

import numpy as np


class Estimator:
    """A model with scikit-learn's interface. Subclasses build it and may convert data."""

    def __init__(self, work, threads, seed):
        self.work = work
        self.model = self.build(work, threads, seed)

    @staticmethod
    def ready(X, y):
        """Return training data that the library need not convert: flat rows of float32."""
        return np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float32), y

    def ready_to_predict(self, X):
        """Return new samples in that form, once the model is fitted."""
        return self.ready(X, None)[0]

    def fit(self, data):
        self.model.fit(*data)

    def predict(self, data):
        """Return labels or values."""
        return self.model.predict(data)

    def predict_proba(self, data):
        return self.model.predict_proba(data)

    def size(self):
        """Return the number of bytes of a pickle."""
        count = ByteCount()
        pickle.dump(self.model, count, protocol=5)
        return count.bytes


class ByteCount:
    """A file that only measures what is written to it."""

    def __init__(self):
        self.bytes = 0

    def write(self, data):
        self.bytes += memoryview(data).nbytes


class Ours(Estimator):
    """Our models; samples keep their shape and type, because bytes are the fastest."""

    @staticmethod
    def ready(X, y):
        return np.ascontiguousarray(X), y

    def build(self, work, threads, seed):
        import morforest

        regression = work["task"] == "regression"
        kind = morforest.MorfRegressor if regression else morforest.MorfClassifier
        return kind(
            self.dictionary(morforest, work),
            n_estimators=work["trees"],
            max_features=work["candidates"],
            n_jobs=threads,
            random_state=seed,
        )


class OursMorf(Ours):
    def dictionary(self, morforest, work):
        return morforest.Patch(
            min_size=tuple(work["smallest"]),
            max_size=tuple(work["largest"]),
            boundary=work["boundary"],
        )


class OursSporf(Ours):
    """The default: two features per atom on average, before empty atoms are drawn again."""

    def dictionary(self, morforest, work):
        return morforest.SparseOblique()


class OursGraph(Ours):
    """Connected sets of a network of ten edges per feature, as large as the sums of SPORF."""

    method, kind = "grow", "Graph"

    def dictionary(self, morforest, work):
        import scipy.sparse as sp

        p = work["shape"][0]
        random = np.random.RandomState(1)
        ends = random.randint(0, p, (2, 10 * p))
        edges = sp.coo_array((random.random_sample(10 * p), tuple(ends)), shape=(p, p))
        sizes = np.cumprod(2.0 / np.arange(1, 21))  # as those of SPORF, cut at 20
        return getattr(morforest, self.kind)(
            sp.csr_array(edges),
            max_size=20,
            method=self.method,
            size_distribution=sizes,
            weights="sign",
        )


class OursWalk(OursGraph):
    method = "walk"


class OursSimilarity(OursGraph):
    kind = "Similarity"


class OursRF(Ours):
    def dictionary(self, morforest, work):
        return morforest.Axis()


class OursKept(OursRF):
    """A forest that keeps the training samples of its leaves, which may be larger than pure."""

    def build(self, work, threads, seed):
        return (
            super()
            .build(work, threads, seed)
            .set_params(keep_samples=True, min_samples_leaf=work["leaf"])
        )

    def weights(self, data):
        return self.model.weights(data)

    def quantiles(self, data, levels):
        return self.model.predict_quantiles(data, levels)


class QuantileForest(Estimator):
    """All samples of a leaf are kept, and share a weight of one, as ours.

    It has no weights; counts of shared leaves are what comes closest.
    """

    def build(self, work, threads, seed):
        from quantile_forest import RandomForestQuantileRegressor

        return RandomForestQuantileRegressor(
            work["trees"],
            max_features=work["candidates"],
            min_samples_leaf=work["leaf"],
            max_samples_leaf=None,
            n_jobs=threads,
            random_state=seed,
        )

    def predict(self, data):
        return self.model.predict(data, quantiles="mean")

    def weights(self, data):
        return self.model.proximity_counts(data, return_sorted=False)

    def quantiles(self, data, levels):
        return self.model.predict(data, quantiles=list(levels), weighted_leaves=True)


class TreeplePatch(Estimator):
    """The same sizes of patches, always inside; ours may reach over the edge."""

    def build(self, work, threads, seed):
        from treeple import PatchObliqueRandomForestClassifier

        return PatchObliqueRandomForestClassifier(
            work["trees"],
            data_dims=tuple(work["shape"]),
            min_patch_dims=tuple(work["smallest"]),
            max_patch_dims=tuple(work["largest"]),
            max_features=work["candidates"],
            n_jobs=threads,
            random_state=seed,
        )


class TreepleOblique(Estimator):
    """`feature_combinations` is the mean number of features of a projection; ours is 2.31."""

    def build(self, work, threads, seed):
        from treeple import ObliqueRandomForestClassifier

        return ObliqueRandomForestClassifier(
            work["trees"],
            max_features=work["candidates"],
            feature_combinations=2.0,
            n_jobs=threads,
            random_state=seed,
        )


class SklearnForest(Estimator):
    kind = "RandomForest"

    def build(self, work, threads, seed):
        import sklearn.ensemble

        task = "Regressor" if work["task"] == "regression" else "Classifier"
        return getattr(sklearn.ensemble, self.kind + task)(
            work["trees"],
            max_features=work["candidates"],
            n_jobs=threads,
            random_state=seed,
        )


class SklearnByHand(SklearnForest):
    """What users write around `apply`: sparse matrices of samples by leaf, and their product."""

    def fit(self, data):
        import scipy.sparse as sp

        X, self.y = data
        self.model.set_params(min_samples_leaf=self.work["leaf"]).fit(X, self.y)
        sizes = [tree.tree_.node_count for tree in self.model.estimators_]
        self.begin = np.append(0, np.cumsum(sizes))
        columns, weights = self.model.apply(X) + self.begin[:-1], np.empty((len(X), len(sizes)))
        for i, drawn in enumerate(self.model.estimators_samples_):
            weights[:, i] = np.bincount(drawn, minlength=len(X))
            total = np.bincount(columns[:, i], weights[:, i], self.begin[-1])
            weights[:, i] /= np.maximum(total[columns[:, i]], 1)
        rows = np.repeat(np.arange(len(X)), len(sizes))
        used = weights.ravel() > 0
        entries = (weights.ravel()[used], (columns.ravel()[used], rows[used]))
        self.samples = sp.csr_matrix(entries, shape=(self.begin[-1], len(X)))

    def weights(self, data):
        import scipy.sparse as sp

        leaves = self.model.apply(data) + self.begin[:-1]
        ends = np.arange(len(data) + 1) * leaves.shape[1]
        ones = np.full(leaves.size, 1 / leaves.shape[1])
        found = sp.csr_matrix((ones, leaves.ravel(), ends), shape=(len(data), self.begin[-1]))
        return found @ self.samples

    def quantiles(self, data, levels):
        order = np.argsort(self.y)
        weights = self.weights(data)[:, order].sorted_indices()
        values, found = self.y[order], np.empty((len(data), len(levels)))
        for i in range(len(data)):
            part = slice(weights.indptr[i], weights.indptr[i + 1])
            reached = np.searchsorted(np.cumsum(weights.data[part]), np.array(levels) - 1e-11)
            found[i] = values[weights.indices[part]][
                np.minimum(reached, part.stop - part.start - 1)
            ]
        return found


class SklearnExtraTrees(SklearnForest):
    """Its default, no bootstrap, is kept."""

    kind = "ExtraTrees"


class SklearnBoosting(Estimator):
    """Defaults, with as many rounds as the others have trees and no early stopping.

    It uses threads of OpenMP, which the environment limits, and would copy float32 to float64.
    """

    @staticmethod
    def ready(X, y):
        return np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float64), y

    def build(self, work, threads, seed):
        import sklearn.ensemble

        task = "Regressor" if work["task"] == "regression" else "Classifier"
        return getattr(sklearn.ensemble, f"HistGradientBoosting{task}")(
            max_iter=work["trees"], early_stopping=False, random_state=seed
        )


class XGBoost(Estimator):
    """Defaults (depth 6, 256 bins), with as many rounds as the others have trees."""

    def build(self, work, threads, seed):
        import xgboost

        kind = xgboost.XGBRegressor if work["task"] == "regression" else xgboost.XGBClassifier
        return kind(
            n_estimators=work["trees"], tree_method="hist", n_jobs=threads, random_state=seed
        )


class LightGBM(Estimator):
    """Defaults (31 leaves, 255 bins), with as many rounds as the others have trees."""

    def build(self, work, threads, seed):
        import lightgbm

        kind = lightgbm.LGBMRegressor if work["task"] == "regression" else lightgbm.LGBMClassifier
        return kind(n_estimators=work["trees"], n_jobs=threads, random_state=seed, verbose=-1)


class Ydf(Estimator):
    """Its data is a vertical dataset, which is made before the timing starts.

    - `winner_take_all` stays at its default, true: each tree has one vote.
    - `compute_oob_performances=False`: no other library is asked for them.
    - `max_depth=-1`, `min_examples=1`: trees grow until leaves are pure; defaults are 16 and 5.
    """

    oblique = False

    @staticmethod
    def ready(X, y):
        import ydf

        ydf.verbose(0)
        columns = {"x": X.reshape(len(X), -1).astype(np.float32), "y": y}
        if y.dtype.kind == "f":
            label = ydf.Column("y", ydf.Semantic.NUMERICAL)
        else:  # also keep rare classes
            label = ydf.Column("y", ydf.Semantic.CATEGORICAL, min_vocab_frequency=1)
        return ydf.create_vertical_dataset(columns, columns=[label], include_all_columns=True)

    def ready_to_predict(self, X):
        import ydf

        return ydf.create_vertical_dataset(
            {"x": X.reshape(len(X), -1).astype(np.float32)},
            data_spec=self.fitted.data_spec(),
            required_columns=self.fitted.input_feature_names(),
        )

    def build(self, work, threads, seed):
        import ydf

        oblique = {}
        if self.oblique:
            # YDF draws ceil(features ^ exponent) projections, but at most the maximum, which is
            # always reached here. A projection has two features on average (ours has 2.31),
            # with weights of +1 and -1, as ours.
            oblique = {
                "split_axis": "SPARSE_OBLIQUE",
                "sparse_oblique_num_projections_exponent": 2.0,
                "sparse_oblique_max_num_projections": work["candidates"],
                "sparse_oblique_projection_density_factor": 2.0,
                "sparse_oblique_weights": "BINARY",
                "sparse_oblique_normalization": "NONE",
            }
        return ydf.RandomForestLearner(
            label="y",
            task=getattr(ydf.Task, work["task"].upper()),
            num_trees=work["trees"],
            num_candidate_attributes=work["candidates"],
            max_depth=-1,
            min_examples=1,
            compute_oob_performances=False,
            num_threads=threads,
            random_seed=seed,
            **oblique,
        )

    def fit(self, data):
        self.fitted = self.model.train(data)

    def predict(self, data):
        found = self.predict_proba(data)
        if self.work["task"] == "regression":
            return found
        labels = np.array(self.fitted.label_classes()).astype(np.int64)
        best = found.argmax(axis=1) if found.ndim == 2 else (found > 0.5).astype(np.intp)
        return labels[best]

    def predict_proba(self, data):
        return self.fitted.predict(data, num_threads=1)

    def size(self):
        """Return the number of bytes of the files that it saves."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            self.fitted.save(str(path))
            return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


class YdfOblique(Ydf):
    oblique = True


MODELS = {
    "morforest MORF": OursMorf,
    "morforest SPORF": OursSporf,
    "morforest RF": OursRF,
    "morforest graph": OursGraph,
    "morforest walk": OursWalk,
    "morforest similarity": OursSimilarity,
    "morforest kept": OursKept,
    "quantile-forest": QuantileForest,
    "treeple patch": TreeplePatch,
    "treeple oblique": TreepleOblique,
    "scikit-learn RF": SklearnForest,
    "scikit-learn by hand": SklearnByHand,
    "scikit-learn ET": SklearnExtraTrees,
    "scikit-learn HGB": SklearnBoosting,
    "ydf oblique": YdfOblique,
    "ydf RF": Ydf,
    "xgboost": XGBoost,
    "lightgbm": LightGBM,
}


def library_of(model):
    return model.split()[0]
