"""EEGNet in PyTorch: few filters over time, few over electrodes for each, and a linear layer.

Lawhern et al., "EEGNet: a compact convolutional neural network for EEG-based brain-computer
interfaces", Journal of Neural Engineering 15(5), 2018. The sizes are those of their EEGNet-8,2. One
thing is done otherwise, for speed: electrodes are mixed first and filtered over time afterwards.
Both steps are linear, so that their order changes no function that the network can learn; the batch
normalisation between them, which only scales, is left out.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments.networks import ConvNet

FILTERS = 8  # over time
MIXTURES = 2  # of electrodes, for each filter
MAPS = 16  # of the second part
LATE = 16  # steps of its filters
POOLS = (4, 8)
DROPOUT = 0.5
LARGEST_MIXTURE, LARGEST_WEIGHTS = 1.0, 0.25  # norms


class Network(nn.Module):
    """The network for samples of (channels, time)."""

    def __init__(self, channels: int, steps: int, classes: int, window: int):
        super().__init__()
        width = FILTERS * MIXTURES
        self.mixtures = nn.Parameter(torch.empty(width, channels))
        self.filters = nn.Parameter(torch.empty(FILTERS, 1, window))
        nn.init.xavier_uniform_(self.mixtures)
        nn.init.xavier_uniform_(self.filters)
        self.first = nn.BatchNorm1d(width)
        self.late = nn.Conv1d(width, width, LATE, groups=width, bias=False)
        self.maps = nn.Conv1d(width, MAPS, 1, bias=False)
        self.second = nn.BatchNorm1d(MAPS)
        self.dropout = nn.Dropout(DROPOUT)
        for pool in POOLS:
            steps = max(steps // pool, 1)
        self.weights = nn.Linear(MAPS * steps, classes)

    def forward(self, X: Tensor) -> Tensor:
        mixed = torch.einsum("wc,nct->nwt", limited(self.mixtures, LARGEST_MIXTURE), X)
        filters = self.filters.repeat_interleave(MIXTURES, dim=0)
        X = functional.conv1d(padded(mixed, filters.shape[-1]), filters, groups=len(filters))
        X = self._end(self.first(X), POOLS[0])
        X = self.maps(self.late(padded(X, LATE)))
        X = self._end(self.second(X), POOLS[1])
        weights = limited(self.weights.weight, LARGEST_WEIGHTS)
        return functional.linear(X.flatten(1), weights, self.weights.bias)

    def _end(self, X: Tensor, pool: int) -> Tensor:
        return self.dropout(functional.avg_pool1d(functional.elu(X), min(pool, X.shape[-1])))


def padded(X: Tensor, window: int) -> Tensor:
    """Add zeros, so that a filter leaves as many steps as there were."""
    return functional.pad(X, ((window - 1) // 2, window // 2))


def limited(weights: Tensor, largest: float) -> Tensor:
    """Shorten the rows that are longer than this."""
    return torch.renorm(weights, 2, 0, largest)


class EEGNet(ConvNet):
    """The network as a classifier; it is trained like the ConvNets of the paper.

    Parameters are those of ``ConvNet`` without its layers, and ``sfreq``, samples per second: the
    filters over time last half a second.
    """

    def __init__(
        self,
        sfreq,
        *,
        learning_rate=2e-3,
        batch_size=32,
        validation=0.2,
        blind_updates=500,
        round_updates=(25, 500),
        patience=15,
        least_gain=1e-4,
        max_updates=4000,
        threads=1,
        random_state=0,
    ):
        super().__init__(
            dims=1,
            learning_rate=learning_rate,
            batch_size=batch_size,
            validation=validation,
            blind_updates=blind_updates,
            round_updates=round_updates,
            patience=patience,
            least_gain=least_gain,
            max_updates=max_updates,
            threads=threads,
            random_state=random_state,
        )
        self.sfreq = sfreq

    def _network(self, classes):
        channels, steps = self.shape_
        window = int(np.clip(self.sfreq // 2, 2, steps))
        return Network(channels, steps, classes, window)
