"""Two small towers for judges that are trained from scratch.

A model config selects them by the key ``tower`` in open_clip's ``vision_cfg`` and ``text_cfg``; the
other keys there are the arguments of their classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from compclip.clip.tokens import PAD


class WordTower(nn.Module):
    """Words to a vector: an embedding, a convolution over ``window`` words, a ReLU, a sum, a
    projection.

    A caption is the sum of its phrases, so the tower generalizes to new combinations of known
    phrases, where a transformer trained on few captions memorizes them. Both towers end in a batch
    norm without weights, which removes what all captions, or all images, have in common: training
    starts faster.
    """

    def __init__(
        self,
        embed_dim: int,
        vocab_size: int,
        context_length: int,
        width: int,
        hidden: int,
        window: int,
    ) -> None:
        super().__init__()
        self.context_length, self.vocab_size, self.window = context_length, vocab_size, window
        self.embedding = nn.Embedding(vocab_size, width, padding_idx=PAD)
        self.places = nn.Linear(width, window * hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.norm = nn.LayerNorm(hidden)
        self.projection = nn.Linear(hidden, embed_dim, bias=False)
        self.center = nn.BatchNorm1d(embed_dim, affine=False)
        nn.init.normal_(self.embedding.weight, std=0.5)
        nn.init.normal_(self.places.weight, std=(window * width) ** -0.5)
        with torch.no_grad():
            self.embedding.weight[PAD].zero_()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Encode ids (n, context_length), padded with ``PAD``, to (n, embed_dim)."""
        # A convolution of embeddings is a sum of rows, one for each word and place in the window.
        # There are far fewer words than positions, so a lookup of rows is several times faster.
        rows = self.places(self.embedding.weight).view(self.vocab_size, self.window, -1)
        rows[:, self.window // 2] += self.bias  # the middle of a window is always a word
        is_word = ids != PAD
        windows = F.pad(ids, (self.window // 2, self.window // 2), value=PAD).unfold(
            1, self.window, 1
        )[is_word]
        # Half of a batch's windows occur more than once; each distinct window is encoded once.
        order, groups, counts = _group_equal(windows, self.vocab_size)
        places = windows[order[counts.cumsum(0) - counts]] * self.window + torch.arange(
            self.window, device=ids.device
        )
        index = places.flatten()
        short = (
            index.short() if len(rows) * self.window < 1 << 15 else index
        )  # sorted in a third of the time
        phrases = _SumRows.apply(
            rows.flatten(0, 1),
            index,
            torch.full_like(counts, self.window),
            short.argsort(stable=True),
        ).relu_()
        captions = _SumRows.apply(
            phrases, torch.empty_like(order).index_copy_(0, order, groups), is_word.sum(1), order
        )
        return self.center(self.projection(self.norm(captions)))


def _group_equal(
    windows: torch.Tensor, vocab_size: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return an order of ``windows`` (n, k) that groups equal ones, the group number of each in it,
    and the sizes.
    """
    codes, bound = windows[:, 0], vocab_size
    for words in windows.T[1:]:
        if bound > torch.iinfo(torch.long).max // vocab_size:
            codes, bound = codes.unique(return_inverse=True)[1], len(codes)
        codes, bound = codes * vocab_size + words, bound * vocab_size
    ranked, order = codes.sort(stable=True)
    return order, *ranked.unique_consecutive(return_inverse=True, return_counts=True)[1:]


class _SumRows(torch.autograd.Function):
    """Sums (len(counts), d) of table rows: consecutive parts of ``index``, of lengths ``counts``,
    select the rows.

    The gradient consists of such sums, too, by ``order``, which sorts ``index``. It takes a tenth
    of the time of torch's embedding bag.
    """

    @staticmethod
    def forward(
        context: Any,
        rows: torch.Tensor,
        index: torch.Tensor,
        counts: torch.Tensor,
        order: torch.Tensor,
    ) -> torch.Tensor:
        context.save_for_backward(index, counts, order)
        context.n = len(rows)
        return F.embedding_bag(index, rows, counts.cumsum(0) - counts, mode="sum")

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        index, counts, order = context.saved_tensors
        owners = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        uses = index.bincount(minlength=context.n)
        return (
            F.embedding_bag(owners[order], gradient, uses.cumsum(0) - uses, mode="sum"),
            None,
            None,
            None,
        )


class ConvTower(nn.Module):
    """Pixels to a vector: convolutions that shrink the picture, the mean over what remains, a
    projection.

    Each convolution makes the picture smaller by its stride (``strides``, by default 2). Where its
    side (``kernels``, by default twice the stride, less one) is larger than the stride, the squares
    of the picture that it sees overlap, so that a small shift of the picture changes less. After
    each there are ``widths`` channels and ``depths`` residual convolutions of the side
    ``residual``, at the end ``features``.
    """

    def __init__(
        self,
        embed_dim: int,
        image_size: int,
        widths: Sequence[int],
        depths: Sequence[int],
        features: int,
        strides: Sequence[int] | None = None,
        kernels: Sequence[int] | None = None,
        residual: int = 3,
    ) -> None:
        super().__init__()
        self.image_size = image_size
        strides = strides or [2] * len(widths)
        kernels = kernels or [2 * stride - 1 for stride in strides]
        layers: list[nn.Module] = []
        before = 3
        for width, depth, stride, kernel in zip(widths, depths, strides, kernels, strict=True):
            layers.append(_convolution(before, width, kernel, stride))
            layers += [_Residual(width, residual) for _ in range(depth)]
            before = width
        self.layers = nn.Sequential(*layers, _convolution(before, features, 1, 1))
        self.projection = nn.Linear(features, embed_dim, bias=False)
        self.center = nn.BatchNorm1d(embed_dim, affine=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Encode normalized images (n, 3, image_size, image_size) to (n, embed_dim)."""
        # channels last, so that the gradient of the mean is as well
        return self.center(
            self.projection(self.layers(images).permute(0, 2, 3, 1).flatten(1, 2).mean(1))
        )


def _convolution(before: int, after: int, kernel: int, stride: int) -> nn.Sequential:
    padding = kernel // 2 if kernel > stride else 0
    return nn.Sequential(
        nn.Conv2d(before, after, kernel, stride, padding, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )


class _Residual(nn.Module):
    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.inner = _convolution(width, width, kernel, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x)


IMAGE_TOWERS: Mapping[str, type[nn.Module]] = {"conv": ConvTower}
TEXT_TOWERS: Mapping[str, type[nn.Module]] = {"words": WordTower}
