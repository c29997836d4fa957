"""The model of HiddenUnitCRF in PyTorch, to compare with the epochs of the core.

Written for speed as far as plain tensors and autograd go: units are computed for the rows that
there are, only the forward algorithm runs over a padded mini-batch, and mini-batches are cut and
padded before the time begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

try:
    import torch
except ImportError:
    raise SystemExit(
        "PyTorch is missing: `make bench` installs it, or `pip install torch` (a wheel for the CPU "
        "is enough: --index-url https://download.pytorch.org/whl/cpu)"
    ) from None


@dataclass(frozen=True, eq=False)
class Padded:
    """A mini-batch: rows, and their places in the padded array (instances, positions)."""

    X: torch.Tensor  # (rows, features)
    labels: torch.Tensor  # (instances, positions), 0 where there is none
    place: torch.Tensor  # (instances, positions): the row, 0 where there is none
    mask: torch.Tensor  # (instances, positions): whether there is one
    last: torch.Tensor  # (instances, 1): the last position

    @classmethod
    def of(
        cls, X: np.ndarray, labels: np.ndarray, offsets: np.ndarray, chosen: np.ndarray
    ) -> Padded:
        """Cut instances out and pad them."""
        lengths = offsets[chosen + 1] - offsets[chosen]
        inside = np.arange(lengths.max()) < lengths[:, None]
        row = np.where(inside, offsets[chosen][:, None] + np.arange(lengths.max()), 0)
        place = np.zeros_like(row)
        place[inside] = np.arange(inside.sum())
        return cls(
            torch.from_numpy(X[row[inside]]),
            torch.from_numpy(np.where(inside, labels[row], 0).astype(np.int64)),
            torch.from_numpy(place),
            torch.from_numpy(inside),
            torch.from_numpy(lengths[:, None] - 1),
        )


class TorchHiddenUnitCRF(torch.nn.Module):
    """Units summed out, a table of transitions, scores of first and last labels.

    ``parameters`` are those of `crfx.potentials.hidden_unit.HiddenShape`, then the tables.
    """

    def __init__(self, parameters: dict[str, np.ndarray]) -> None:
        super().__init__()
        for name, values in parameters.items():
            tensor = torch.from_numpy(values.astype(np.float32))
            self.register_parameter(name, torch.nn.Parameter(tensor))

    def forward(self, batch: Padded) -> torch.Tensor:
        """-log p of the labels, summed over the mini-batch."""
        inputs = torch.addmm(self.bias, batch.X, self.weights)
        units = torch.nn.functional.softplus(inputs[:, None, :] + self.to_label.T.contiguous())
        node = (units.sum(dim=2) + self.constant)[batch.place]
        return (self.log_sum(node, batch) - self.truth(node, batch)).sum()

    def log_sum(self, node: torch.Tensor, batch: Padded) -> torch.Tensor:
        """(instances,): log of the sum over all labellings."""
        forward = self.start + node[:, 0]
        for t in range(1, node.shape[1]):
            new = torch.logsumexp(forward[:, :, None] + self.edge, dim=1) + node[:, t]
            forward = torch.where(batch.mask[:, t, None], new, forward)
        return torch.logsumexp(forward + self.end, dim=1)

    def truth(self, node: torch.Tensor, batch: Padded) -> torch.Tensor:
        """(instances,): what the labels score."""
        labels, mask = batch.labels, batch.mask
        nodes = (node.gather(2, labels[:, :, None]).squeeze(2) * mask).sum(dim=1)
        edges = (self.edge[labels[:, :-1], labels[:, 1:]] * mask[:, 1:]).sum(dim=1)
        ends = self.start[labels[:, 0]] + self.end[labels.gather(1, batch.last).squeeze(1)]
        return nodes + edges + ends


def sweep(model: TorchHiddenUnitCRF, batches: list[Padded], step: float, period: float) -> None:
    """Run one epoch of SGD; step t has size step / (1 + t / period), as in `crfx.trainers.sgd`."""
    optimizer = torch.optim.SGD(model.parameters(), lr=step)
    for number, batch in enumerate(batches):
        optimizer.param_groups[0]["lr"] = step / (1 + number / period)
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()


def loss(model: TorchHiddenUnitCRF, batches: list[Padded]) -> float:
    """-log p over all mini-batches."""
    with torch.no_grad():
        return float(sum(model(batch).double() for batch in batches))


def use_threads(n: int) -> None:
    """Compute on so many threads."""
    torch.set_num_threads(n)
