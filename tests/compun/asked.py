"""Small models of transformers with random weights, in folders as that library saves them."""

import json
from pathlib import Path
from typing import Any

from compclip.clip.vision import import_torchvision

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "a photo of red blue green wing bill tail example in an image is has which bad the ball snow , .".split()
TEXT = {
    "vocab_size": len(SPECIAL) + len(WORDS), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip


def _save(folder: Path, model: Any, processor: Any) -> Path:
    folder.mkdir(parents=True)
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    return folder


def tiny_blip(folder: Path, seed: int = 0) -> Path:
    import_torchvision()
    import torch
    from transformers import BlipConfig, BlipForImageTextRetrieval, BlipImageProcessorPil

    torch.manual_seed(seed)
    vision = {
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "image_size": 32,
        "patch_size": 8, "initializer_range": 0.2,
    }  # fmt: skip
    tokens = {"bos_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
    text = {**TEXT, **tokens, "initializer_range": 0.2, "encoder_hidden_size": 16}
    config = BlipConfig(text_config=text, vision_config=vision, image_text_hidden_size=8, initializer_range=0.2)
    return _save(folder, BlipForImageTextRetrieval(config), BlipImageProcessorPil(size={"height": 32, "width": 32}))


def tiny_align(folder: Path) -> Path:
    """Its images are resized to 40, then cut to 32, as the published ones are to 346 and 289."""
    import_torchvision()
    import torch
    from transformers import AlignConfig, AlignModel, EfficientNetImageProcessorPil

    torch.manual_seed(0)
    vision = {
        "image_size": 32, "width_coefficient": 0.25, "depth_coefficient": 0.25, "kernel_sizes": [3], "in_channels": [8],
        "out_channels": [8], "strides": [2], "num_block_repeats": [1], "expand_ratios": [1], "depthwise_padding": [],
        "hidden_dim": 16, "depth_divisor": 8,
    }  # fmt: skip
    config = AlignConfig(text_config=TEXT, vision_config=vision, projection_dim=8)
    processor = EfficientNetImageProcessorPil(
        size={"height": 40, "width": 40}, crop_size={"height": 32, "width": 32}, do_center_crop=True, resample=2,
        do_normalize=False, rescale_factor=2 / 255, rescale_offset=True, include_top=False,
    )  # fmt: skip
    return _save(folder, AlignModel(config), processor)
