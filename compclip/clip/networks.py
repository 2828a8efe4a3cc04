"""Two small towers for judges that are trained from scratch.

A model config selects them by the key ``tower`` in open_clip's ``vision_cfg`` and ``text_cfg``; the
other keys there are the arguments of their classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        self.context_length = context_length
        self.vocab_size = vocab_size
        self.window = window
        self.embedding = nn.Embedding(vocab_size, width, padding_idx=PAD)
        self.places = nn.Linear(width, window * hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.norm = nn.LayerNorm(hidden)
        self.projection = nn.Linear(hidden, embed_dim, bias=False)
        self.center = nn.BatchNorm1d(embed_dim, affine=False)
        nn.init.normal_(self.embedding.weight, std=0.5)
        # A phrase sums ``window * width`` products.
        nn.init.normal_(self.places.weight, std=(window * width) ** -0.5)
        # The initialization overwrote the padding's embedding, which must be 0.
        with torch.no_grad():
            self.embedding.weight[PAD].zero_()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Encode ids (n, context_length), padded with ``PAD``, to (n, embed_dim)."""
        # A convolution of embeddings is a sum of rows, one for each word and position in the
        # window. There are far fewer words than positions, so a lookup of rows is several times
        # faster.
        rows = self.places(self.embedding.weight).view(self.vocab_size, self.window, -1)
        middle = self.window // 2
        rows[:, middle] += self.bias  # the middle of a window is always a word
        is_word = ids != PAD
        padded = F.pad(ids, (middle, middle), value=PAD)
        windows = padded.unfold(1, self.window, 1)[is_word]
        # Half of a batch's windows occur more than once; each distinct window is encoded once.
        order, groups, counts = _group_equal(windows, self.vocab_size)
        group_starts = counts.cumsum(0) - counts
        distinct = windows[order[group_starts]]
        positions = torch.arange(self.window, device=ids.device)
        index = (distinct * self.window + positions).flatten()
        # Numbers of 16 bits are sorted in a third of the time.
        is_small = len(rows) * self.window < 1 << 15
        by_row = (index.short() if is_small else index).argsort(stable=True)
        lengths = torch.full_like(counts, self.window)
        phrases = _SumRows.apply(rows.flatten(0, 1), index, lengths, by_row).relu_()
        # the distinct window of each word, in the order of the captions
        index = torch.empty_like(order).index_copy_(0, order, groups)
        captions = _SumRows.apply(phrases, index, is_word.sum(1), order)
        return self.center(self.projection(self.norm(captions)))


def _group_equal(
    windows: torch.Tensor, vocab_size: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return an order of ``windows`` (n, k) that groups equal ones, the group number of each in it,
    and the sizes.
    """
    # A window is one number, with its words as the digits of base ``vocab_size``.
    codes = windows[:, 0]
    bound = vocab_size  # above all codes
    for words in windows.T[1:]:
        # Another digit may not fit into 64 bits: numbers of the distinct codes are smaller.
        if bound > torch.iinfo(torch.long).max // vocab_size:
            codes = codes.unique(return_inverse=True)[1]
            bound = len(codes)
        codes = codes * vocab_size + words
        bound *= vocab_size
    ranked, order = codes.sort(stable=True)
    _, groups, counts = ranked.unique_consecutive(return_inverse=True, return_counts=True)
    return order, groups, counts


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
        starts = counts.cumsum(0) - counts
        return F.embedding_bag(index, rows, starts, mode="sum")

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        index, counts, order = context.saved_tensors
        # A row's gradient is the sum of those of all sums that it is in.
        sums = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        uses = index.bincount(minlength=context.n)
        starts = uses.cumsum(0) - uses
        row_gradient = F.embedding_bag(sums[order], gradient, starts, mode="sum")
        return row_gradient, None, None, None  # the other arguments are integers


@dataclass(frozen=True)
class ConvLayers:
    """The convolutions of a ``ConvTower``, as keys of a model config.

    Each convolution makes the picture smaller by its stride (``strides``, by default 2). Where its
    side (``kernels``, by default twice the stride, less one) is larger than the stride, the squares
    of the picture that it sees overlap, so that a small shift of the picture changes less. After
    each there are ``widths`` channels and ``depths`` residual convolutions of the side
    ``residual``, at the end ``features``.
    """

    widths: Sequence[int]
    depths: Sequence[int]
    features: int
    strides: Sequence[int] | None = None
    kernels: Sequence[int] | None = None
    residual: int = 3

    def build(self) -> nn.Sequential:
        """Return them as modules, with random weights."""
        strides = self.strides or [2] * len(self.widths)
        kernels = self.kernels or [2 * stride - 1 for stride in strides]
        modules: list[nn.Module] = []
        channels = 3  # red, green, blue
        sizes = zip(self.widths, self.depths, strides, kernels, strict=True)
        for width, depth, stride, kernel in sizes:
            modules.append(_convolution(channels, width, kernel, stride))
            modules += [_Residual(width, self.residual) for _ in range(depth)]
            channels = width
        return nn.Sequential(*modules, _convolution(channels, self.features, 1, 1))


class ConvTower(nn.Module):
    """Pixels to a vector: convolutions that shrink the picture, the mean over what remains, a
    projection.

    ``layers``: the fields of ``ConvLayers``.
    """

    def __init__(self, embed_dim: int, image_size: int, **layers: Any) -> None:
        super().__init__()
        self.image_size = image_size
        convolutions = ConvLayers(**layers)
        self.layers = convolutions.build()
        self.projection = nn.Linear(convolutions.features, embed_dim, bias=False)
        self.center = nn.BatchNorm1d(embed_dim, affine=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Encode normalized images (n, 3, image_size, image_size) to (n, embed_dim)."""
        x = self.layers(images)
        # channels last, so that the gradient of the mean is as well
        pooled = x.permute(0, 2, 3, 1).flatten(1, 2).mean(1)
        return self.center(self.projection(pooled))


def _convolution(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Sequential:
    # Squares that do not overlap divide the picture without a border.
    padding = kernel // 2 if kernel > stride else 0
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False),  # the norm has a bias
        nn.BatchNorm2d(outputs),
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
