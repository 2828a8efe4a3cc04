"""Train a small text-to-image diffusion model of pixels and save it as a pipeline of the diffusers
library.

    python -m examples.diffusion.train --captions results/mine/mine/color/export/train.jsonl
    --output models/words

The captions' ``file_name`` is relative to ``--images``. Generator kind ``diffusers`` then draws the
prompts: ``{name: words, kind: diffusers, model: models/words, steps: 12, guidance: 3}``.

One setting decides how the text reaches the image: with ``--text words``, each place of the image
attends over the states of the words (as in Imagen and DeepFloyd IF); with ``--text pooled``, one
vector of the whole text is added to that of the time. Text encoder and network are trained
together, from scratch. A killed training resumes.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import diffusers  # which imports its parts when they are first used
import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch.nn.functional import mse_loss
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from compclip.clip.vision import import_torchvision
from compclip.core.reading.pictures import read_rgb

LENGTH = 77  # words that the pipeline reads


def read_images(rows: list[dict], root: Path, size: int) -> tuple[torch.Tensor, list[list[str]]]:
    """Return the images, bytes of shape [n, 3, size, size], and the captions of each."""
    captions: dict[str, list[str]] = {}
    for row in rows:
        captions.setdefault(row["file_name"], []).append(row["text"])
    images = np.empty((len(captions), size, size, 3), np.uint8)
    for number, path in enumerate(captions):
        image = read_rgb(root / path)
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        box = (left, top, left + side, top + side)
        images[number] = image.resize((size, size), Image.Resampling.BOX, box)
    return torch.from_numpy(images).permute(0, 3, 1, 2), list(captions.values())


def make_tokenizer(texts: list[str]) -> transformers.PreTrainedTokenizerFast:
    """Return a tokenizer with a number for each word of the texts that occurs twice."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(
        texts, trainers.WordLevelTrainer(min_frequency=2, special_tokens=special)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=LENGTH,
    )


def make_pipeline(
    tokenizer: transformers.PreTrainedTokenizerFast, text: str, size: int, channels: list[int]
) -> diffusers.IFPipeline:
    """Return the untrained model: a text encoder and a network that denoises pixels."""
    width = 128
    encoder = transformers.T5EncoderModel(
        transformers.T5Config(
            vocab_size=len(tokenizer),
            d_model=width,
            d_kv=32,
            num_heads=4,
            d_ff=256,
            num_layers=2,
            dropout_rate=0.0,
            pad_token_id=0,
            eos_token_id=1,
        )
    )
    levels = len(channels) - 1  # all but the one of full size attend
    words = text == "words"
    down = ["DownBlock2D", *["SimpleCrossAttnDownBlock2D" if words else "DownBlock2D"] * levels]
    up = [*["SimpleCrossAttnUpBlock2D" if words else "UpBlock2D"] * levels, "UpBlock2D"]
    network = diffusers.UNet2DConditionModel(
        sample_size=size,
        in_channels=3,
        out_channels=6,  # noise and a variance, which the pipeline does not use
        block_out_channels=channels,
        layers_per_block=1,
        down_block_types=down,
        up_block_types=up,
        mid_block_type="UNetMidBlock2DSimpleCrossAttn" if words else "UNetMidBlock2D",
        only_cross_attention=True,
        cross_attention_dim=width,
        attention_head_dim=32,
        norm_num_groups=8,
        addition_embed_type=None if words else "text",
        addition_embed_type_num_heads=4,
        encoder_hid_dim=width,
    )
    scheduler = diffusers.DPMSolverMultistepScheduler(
        beta_schedule="squaredcos_cap_v2",
        prediction_type="v_prediction",
        timestep_spacing="trailing",
    )
    return diffusers.IFPipeline(
        tokenizer, encoder, network, scheduler, None, None, None, requires_safety_checker=False
    )


def loss_of(
    pipeline: diffusers.IFPipeline, images: torch.Tensor, tokens: torch.Tensor
) -> torch.Tensor:
    """Return the error of the predicted velocity (Salimans and Ho, 2022) at random times.

    Args:
        pipeline: its text encoder and network are trained.
        images: from -1 to 1, of shape [n, 3, size, size].
        tokens: of shape [n, LENGTH].
    """
    states = pipeline.text_encoder(tokens, attention_mask=(tokens != 0).long()).last_hidden_state
    times = torch.randint(
        len(pipeline.scheduler.alphas_cumprod), (len(images),), device=images.device
    )
    noise = torch.randn_like(images)
    signal = pipeline.scheduler.alphas_cumprod.to(images.device)[times].view(-1, 1, 1, 1)
    noisy = signal.sqrt() * images + (1 - signal).sqrt() * noise
    velocity = signal.sqrt() * noise - (1 - signal).sqrt() * images
    return mse_loss(
        pipeline.unet(noisy, times, encoder_hidden_states=states).sample[:, :3], velocity
    )


def draw_samples(pipeline: diffusers.IFPipeline, texts: list[str], path: Path) -> None:
    """Draw an image for each text, side by side and enlarged."""
    pipeline.set_progress_bar_config(disable=True)
    noise = [torch.Generator().manual_seed(number) for number in range(len(texts))]
    images = pipeline(
        texts, generator=noise, num_inference_steps=12, guidance_scale=3.0, clean_caption=False
    ).images
    strip = np.concatenate([np.asarray(image) for image in images], axis=1)
    Image.fromarray(strip).resize(
        (strip.shape[1] * 4, strip.shape[0] * 4), Image.Resampling.NEAREST
    ).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captions", type=Path, required=True, help="export/train.jsonl of a run")
    parser.add_argument(
        "--images", type=Path, default=Path(), help="the folder to which paths are relative"
    )
    parser.add_argument("--output", type=Path, required=True, help="the folder of the model")
    parser.add_argument("--text", choices=["words", "pooled"], default="words")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--size", type=int, default=32, help="pixels")
    parser.add_argument("--channels", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument(
        "--every",
        type=int,
        default=500,
        help="steps from one checkpoint and its samples to the next",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    # before diffusers does, since some builds of torch lack a part that it needs
    import_torchvision()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = [json.loads(line) for line in options.captions.open(encoding="utf-8")]
    images, captions = read_images(rows, options.images, options.size)
    tokenizer = make_tokenizer([row["text"] for row in rows])
    pipeline = make_pipeline(tokenizer, options.text, options.size, options.channels).to(device)
    trained = torch.nn.ModuleList([pipeline.text_encoder, pipeline.unet]).train()
    average = AveragedModel(trained, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    optimizer = torch.optim.AdamW(trained.parameters(), lr=options.lr, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.lr, options.steps, pct_start=0.05
    )

    parts = {"model": trained, "average": average, "optimizer": optimizer, "schedule": schedule}
    checkpoint, first = options.output / "checkpoint.pt", 0
    options.output.mkdir(parents=True, exist_ok=True)
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        first = saved.pop("step")
        for name, part in parts.items():
            part.load_state_dict(saved[name])
    started, losses = time.monotonic(), []
    for step in range(first, options.steps):
        random = np.random.default_rng([options.seed, step])
        torch.manual_seed(options.seed * options.steps + step)
        batch = random.integers(len(images), size=options.batch)
        # One text in ten is empty, so that guidance has a model without text to compare with.
        texts = [
            "" if random.random() < 0.1 else random.choice(captions[number]) for number in batch
        ]
        tokens = tokenizer(
            texts, padding="max_length", max_length=LENGTH, truncation=True, return_tensors="pt"
        )
        loss = loss_of(pipeline, images[batch].to(device) / 127.5 - 1, tokens.input_ids.to(device))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average.update_parameters(trained)
        losses.append(loss.item())
        if len(losses) == 50:
            left = (time.monotonic() - started) / (step + 1 - first) * (options.steps - step - 1)
            done = f"step {step + 1} of {options.steps}, loss {np.mean(losses):.4f}"
            print(f"{options.output.name}: {done}, {left / 60:.0f} minutes left", flush=True)
            losses.clear()
        if (step + 1) % options.every == 0 or step + 1 == options.steps:
            state = {name: part.state_dict() for name, part in parts.items()}
            torch.save({"step": step + 1, **state}, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
            pipeline.text_encoder, pipeline.unet = average.module
            draw_samples(
                pipeline,
                [texts[0] for texts in captions[:10]],
                options.output / f"{step + 1:06d}.png",
            )
            if step + 1 == options.steps:
                pipeline.save_pretrained(options.output)
            pipeline.text_encoder, pipeline.unet = trained


if __name__ == "__main__":
    main()
