"""The small towers."""

import pytest
import torch
import torch.nn.functional as F

from compclip.clip.model import fold_norms
from compclip.clip.networks import ConvTower, WordTower
from compclip.clip.tokens import PAD


@pytest.mark.parametrize("vocab_size", [20, 2**21])  # 2**21 to the 5th does not fit into 64 bits
def test_the_word_tower_is_a_convolution(vocab_size: int) -> None:
    """Features and gradients, in a batch in which windows repeat and a row has no word."""
    torch.manual_seed(0)
    tower = WordTower(embed_dim=6, vocab_size=vocab_size, context_length=9, width=1, hidden=7, window=5).double()
    tower.center.eval()
    ids = torch.randint(1, 3, (5, 9)) * (vocab_size // 2 - 1)
    ids[0, 4:] = ids[2, 1:] = ids[3] = PAD
    kernel = tower.places.weight.view(5, 7, 1).permute(1, 2, 0)
    vectors = F.embedding(F.pad(ids, (2, 2), value=PAD), tower.embedding.weight).transpose(1, 2)
    spread = F.relu(F.conv1d(vectors, kernel, tower.bias))
    expected = tower.center(tower.projection(tower.norm((spread * (ids != PAD).unsqueeze(1)).sum(2))))
    torch.testing.assert_close(tower(ids), expected)
    weights = list(tower.parameters())
    ours, theirs = (torch.autograd.grad(y.pow(2).sum(), weights) for y in (tower(ids), expected))
    torch.testing.assert_close(ours, theirs)
    assert not tower.embedding.weight[PAD].any()


def test_the_conv_tower_halves_the_picture_and_folded_norms_do_not_change_the_features() -> None:
    """A pixel changes one place alone if the convolutions do not overlap."""
    for overlap in (True, False):
        tower = ConvTower(6, image_size=20, widths=[4, 8], depths=[0, 2], features=5, overlap=overlap).eval()
        pictures = torch.zeros(2, 3, 20, 20)
        pictures[1, :, 7, 7] = 100
        places = tower.layers(pictures)
        assert places.shape == (2, 5, 5, 5) and tower(pictures).shape == (2, 6)
        assert ((places[0] != places[1]).any(0).sum() == 1) == (not overlap)
    torch.manual_seed(0)
    tower = ConvTower(embed_dim=6, image_size=20, widths=[4, 8], depths=[0, 1], features=5).train()
    images = torch.randn(32, 3, 20, 20)
    for _ in range(5):
        tower(images)  # so that the norms are not the identity
    tower.eval()
    before = tower(images)
    fold_norms(tower)
    assert not any(isinstance(part, torch.nn.BatchNorm2d) for part in tower.modules())
    torch.testing.assert_close(tower(images), before)
