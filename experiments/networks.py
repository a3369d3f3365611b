"""The ConvNets of the paper, in PyTorch, as a classifier with scikit-learn's interface."""

import contextlib
import copy
import math
from collections.abc import Iterator

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

CONV = {1: nn.Conv1d, 2: nn.Conv2d}
POOL = {1: nn.MaxPool1d, 2: nn.MaxPool2d}
PAD = {1: nn.ZeroPad1d, 2: nn.ZeroPad2d}

# The fewest rows that a held-out loss needs, and the largest share that they may have.
FEWEST_HELD_OUT = 10
LARGEST_SHARE = 0.25
# Rows that pass through a network at once without gradients; this bounds memory.
ROWS_AT_ONCE = 500


def input_shape(shape: tuple[int, ...], dims: int) -> tuple[int, ...]:
    """Return (channels, *sizes) of a sample as the first layer sees it.

    A network over one axis takes the others as its channels; one over two takes a sample as an
    image of one channel, whose rows may be the channels of a series.
    """
    if dims == 1:
        return (math.prod(shape[:-1]), shape[-1])
    if dims == 2 and len(shape) <= 2:
        return (1, *((1,) * (2 - len(shape))), *shape)
    raise ValueError(f"A ConvNet over {dims} axes cannot take samples of shape {shape}.")


def build(layers: list[dict], dims: int, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Return the network for samples of a shape; hyperparameters.toml explains `layers`."""
    channels, *sizes = input_shape(shape, dims)
    modules: list[nn.Module] = []
    features = None  # how many, once the samples are flat
    for layer in layers:
        match layer:
            case {"conv": filters, "window": window}:
                # An even window has no middle, so the extra zero goes to the end.
                before, after = (window - 1) // 2, window // 2
                if before == after:
                    modules.append(CONV[dims](channels, filters, window, padding=before))
                else:
                    modules.append(PAD[dims]((before, after) * dims))
                    modules.append(CONV[dims](channels, filters, window))
                modules.append(nn.ReLU())
                channels = filters
            case {"pool": window}:
                windows = [min(window, size) for size in sizes]
                pool = POOL[dims](tuple(windows))
                # The maximum of ReLUs is the ReLU of the maximum, which is cheaper.
                after_relu = bool(modules) and isinstance(modules[-1], nn.ReLU)
                modules.insert(len(modules) - after_relu, pool)
                sizes = [size // side for size, side in zip(sizes, windows, strict=True)]
            case {"dropout": probability}:
                modules.append(nn.Dropout(probability))
            case {"linear": width}:
                if features is None:
                    modules.append(nn.Flatten())
                    features = channels * math.prod(sizes)
                modules += [nn.Linear(features, width), nn.ReLU()]
                features = width
            case _:
                raise ValueError(f"layers: {layer} is none of conv, pool, dropout and linear.")
    if features is None:
        raise ValueError("layers must hold a linear one: there is none.")
    return nn.Sequential(*modules, nn.Linear(features, classes))


@contextlib.contextmanager
def private_state(threads: int, seed: int) -> Iterator[None]:
    """Give PyTorch a number of threads and a generator of its own, and restore both afterwards."""
    previous = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(previous)


def hold_out(y: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to train on and rows to stop by, stratified; all and none if there are few."""
    counts = np.bincount(y)
    held_out = max(round(share * len(y)), FEWEST_HELD_OUT, len(counts))
    rows = np.arange(len(y))
    if counts.min() < 2 or held_out > LARGEST_SHARE * len(y):
        return rows, rows[:0]
    return tuple(train_test_split(rows, test_size=held_out, stratify=y, random_state=seed))


class ConvNet(ClassifierMixin, BaseEstimator):
    """A convolutional network, trained with Adam until a held-out loss stops falling.

    Parameters are explained in hyperparameters.toml. Samples are numbers of a modest range
    (standardise them), of shape (n, *shape). Each fit starts from fresh weights; the same data,
    seed and number of threads give the same network.

    After a fit, `losses_` holds the held-out loss of each round (none where too few rows allowed no
    hold-out) and `updates_` how many updates were made.
    """

    def __init__(
        self,
        layers=(),
        *,
        dims=2,
        learning_rate=1e-3,
        batch_size=32,
        validation=0.1,
        blind_updates=500,
        round_updates=(25, 500),
        patience=10,
        least_gain=1e-4,
        max_updates=20_000,
        threads=1,
        random_state=0,
    ):
        self.layers = layers
        self.dims = dims
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.validation = validation
        self.blind_updates = blind_updates
        self.round_updates = round_updates
        self.patience = patience
        self.least_gain = least_gain
        self.max_updates = max_updates
        self.threads = threads
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_, y = np.unique(y, return_inverse=True)
        self.shape_ = X.shape[1:]
        train, held_out = hold_out(y, self.validation, self.random_state)
        inputs, targets = self._tensor(X), torch.from_numpy(y)
        with private_state(self.threads, self.random_state):
            network = self._network(len(self.classes_))
            self.network_ = network
            self.losses_, self.updates_ = [], 0
            if len(held_out):
                self._train_until_worse(inputs, targets, train, held_out)
            else:
                self._train(self._batches(inputs, targets, train), self.blind_updates)
        network.eval()
        return self

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X):
        inputs = self._tensor(X)
        with private_state(self.threads, self.random_state), torch.inference_mode():
            self.network_.eval()
            scores = [self.network_(part) for part in inputs.split(ROWS_AT_ONCE)]
            return torch.softmax(torch.cat(scores).double(), dim=1).numpy()

    def _network(self, classes) -> nn.Module:
        return build(self.layers, self.dims, self.shape_, classes)

    def _tensor(self, X) -> Tensor:
        if X.shape[1:] != self.shape_:
            raise ValueError(f"X has samples of shape {X.shape[1:]}, fitted were {self.shape_}.")
        rows = np.ascontiguousarray(X, dtype=np.float32)
        if not np.isfinite(rows).all():
            raise ValueError("X must be finite: it holds NaN or infinity.")
        return torch.from_numpy(rows).reshape(len(X), *input_shape(self.shape_, self.dims))

    def _train_until_worse(self, inputs, targets, train, held_out) -> None:
        """Train until `patience` rounds bring no lower held-out loss, and keep the best weights."""
        batches = self._batches(inputs, targets, train)
        fewest, most = self.round_updates
        a_round = min(max(math.ceil(len(train) / self.batch_size), fewest), most)
        best, waited, weights = math.inf, 0, None
        optimizer = None
        while waited < self.patience and self.updates_ < self.max_updates:
            optimizer = self._train(
                batches, min(a_round, self.max_updates - self.updates_), optimizer
            )
            loss = self._loss(inputs[held_out], targets[held_out])
            self.losses_.append(loss)
            if loss < best - self.least_gain:
                best, waited, weights = loss, 0, copy.deepcopy(self.network_.state_dict())
            else:
                waited += 1
        self.network_.load_state_dict(weights)

    def _train(self, batches, updates, optimizer=None):
        """Make some updates; return the optimizer, with whose moments the next call continues."""
        if optimizer is None:
            optimizer = torch.optim.Adam(self.network_.parameters(), lr=self.learning_rate)
        self.network_.train()
        for _ in range(updates):
            inputs, targets = next(batches)
            optimizer.zero_grad()
            nn.functional.cross_entropy(self.network_(inputs), targets).backward()
            optimizer.step()
        self.updates_ += updates
        return optimizer

    def _batches(self, inputs, targets, rows) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield batches without end; each pass over the rows has an order of its own."""
        rows = torch.from_numpy(rows)
        while True:
            for batch in rows[torch.randperm(len(rows))].split(self.batch_size):
                yield inputs[batch], targets[batch]

    def _loss(self, inputs, targets) -> float:
        self.network_.eval()
        with torch.inference_mode():
            total = sum(
                float(nn.functional.cross_entropy(self.network_(x), y, reduction="sum"))
                for x, y in zip(
                    inputs.split(ROWS_AT_ONCE), targets.split(ROWS_AT_ONCE), strict=True
                )
            )
        return total / len(targets)
