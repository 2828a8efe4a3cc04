"""Compare judges on images of known truth: what is composed by each, and what its certificate says.

On a finished default run, generators of kind ``half`` draw anew what each of five fractions of the
held-out prompts asks for. Each judge chooses for their images and for the anchors'. Its *error* is
the mean distance between what it finds composed and what was drawn; its *certificate* is of real
images that are judged nowhere else here. Judges are made worse by degrees.
"""

import base64
import hashlib
import io
import json
import platform
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from PIL import Image
from pydantic import Field
from scipy import stats

from compclip.clip.model import Judge, build, load_judge, save_judge
from compclip.core.artifacts.files import write_text
from compclip.core.artifacts.heldout import matched_pairs, read_heldout
from compclip.core.artifacts.parquet import read_frame, read_table
from compclip.core.identity.code import ROOT
from compclip.core.seeds import rng
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from compclip.core.tables import (
    CAPTIONS,
    HELD_OUT,
    IMAGES,
    MANIFEST,
    PAIRS,
    PROMPTS,
    RANKING,
    SCORES,
    SPLIT,
    SWAPPED,
    VARIANTS,
)
from compclip.generate.generator import Context as DrawingContext
from compclip.generate.generators import half
from compclip.judge.certify import LEAST_ADJECTIVES, Certificate, certify, chance_corrected
from compclip.judge.chooser import Chooser, Context, JudgedImage, chances_of_scores
from compclip.judge.kinds.clip import ClipChooser
from compclip.judge.make_certificate import make_certificate, sample_items
from compclip.judge.open_judge import open_judge
from compclip.plot.drawing import GRAY, SERIES_COLORS, SERIES_MARKS, WIDTH, finish, save, style
from compclip.report.judges import fraction_composed
from compclip.score.choose_texts import (
    OF_ADJECTIVE,
    OF_PROMPT,
    Asker,
    choice_id,
    choose_texts,
)
from compclip.score.entries import ENTRY, judged_entries
from compclip.score.prompt_following import CANDIDATES, prompt_distractors
from compclip.split.evaluation import evaluation_images
from compclip.split.pools import Pools, class_names
from compclip.stats.r_precision import expected_top1
from workflow_scripts.workflow.config import Config, read_config

DOCUMENT = ROOT / "docs" / "judges.md"
PICTURE = ROOT / "docs" / "pictures" / "judges.svg"
BEGIN, END = "<!-- measured by `make judges` -->", "<!-- end of judges -->"
FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
TARGET = 0.06  # mean distance from the truth of judges that pass
ANCHORS = ("faithful", "memorizer", "usual")
HEAD_STEPS = 1500  # of the matching head's training
HEAD_BATCH = 256


class Judges(Command):
    """Compare judges on images of known truth, and write docs/judges.md."""

    config: Path = Field(Path("config.yaml"), description="config of a finished default run")
    composition: str = Field("color", description="composition to measure")
    part: int = Field(4, ge=1, description="one of so many images is judged")
    certified: int = Field(400, ge=10, description="items of each kind in the certificate")
    write: bool = Field(True, description="write docs/judges.md")


@dataclass(frozen=True)
class World:
    """Images of known truth, and the tables of their run.

    Attributes:
        entries: as ``choose_texts`` takes them.
        drawn: for each path, the adjective that its noun has.
        certificate: right and wrong texts of real images.
        distractors: captions of images of other classes, for each prompt.
    """

    config: Config
    composition: str
    entries: pd.DataFrame
    variants: pd.DataFrame
    drawn: Mapping[str, str]
    certificate: pd.DataFrame
    matched: list[str]
    distractors: pd.DataFrame

    @property
    def results(self) -> Path:
        return Path(self.config.results)

    @property
    def asker(self) -> Asker:
        return Asker(lambda path: (self.results / path, None))

    def truth(self, generator: str) -> float:
        """Return the fraction of held-out prompts whose pair a generator drew, relative to seen
        ones.
        """
        rows = self.entries[self.entries["generator"] == generator]
        shown = rows["path"].map(self.drawn) == rows["pair"].str.split("_").str[0]
        is_seen = rows["split"] == "test_seen"
        return float(shown[~is_seen].mean() / shown[is_seen].mean())


def read_world(command: Judges, folder: Path) -> World:
    """Read a finished run, draw the generators of known truth into ``folder``, and make the
    certificate's table.
    """
    config = read_config(command.config)
    data = config.data_folder
    home = data / command.composition
    prompts = read_table(home / "prompts.parquet", PROMPTS)
    variants = read_table(home / "variants.parquet", VARIANTS)
    # The images of the certificate are judged nowhere else.
    images = pd.Series(sorted(prompts["image_id"].unique()))
    number = images.map(lambda name: int(rng(0, "judges", name).integers(command.part * 2)))
    judged = images[number == 0]
    certified = images[number % 2 == 1]
    of_judged = prompts[prompts["image_id"].isin(judged)].reset_index(drop=True)
    entries = []
    drawn: dict[str, str] = {}
    for name in ANCHORS:
        manifest = read_table(home / f"generated/{name}/manifest.parquet", MANIFEST)
        scenes = read_frame(home / f"generated/{name}/scenes.parquet")
        entries.append(entries_of(name, of_judged, manifest))
        drawn |= drawn_adjectives(entries[-1], scenes, command.composition)
    tables = {
        name: read_frame(
            (home if (home / f"{name}.parquet").exists() else data) / f"{name}.parquet"
        )
        for name in half.TABLES
    }
    for fraction in FRACTIONS:
        name = f"half_{100 * fraction:.0f}"
        images_folder = folder / name
        images_folder.mkdir()
        # Paths are relative to the results folder; an absolute one stays as it is.
        context = DrawingContext(
            tables, images_folder, str(images_folder), command.composition, config.seed
        )
        settings = half.Settings(fraction=fraction)
        generated = half.generate(settings, of_judged, context)
        entries.append(entries_of(name, of_judged, generated.manifest))
        assert generated.scenes is not None, "sketches have scenes"
        drawn |= drawn_adjectives(entries[-1], generated.scenes, command.composition)
    captions = read_table(data / "captions.parquet", CAPTIONS)
    of_certified = prompts[prompts["image_id"].isin(certified) & (prompts["draw"] == 0)]
    table = make_certificate(
        of_certified.reset_index(drop=True),
        captions,
        read_table(data / "pairs.parquet", PAIRS),
        variants,
        read_table(data / "images.parquet", IMAGES),
        command.composition,
    )
    ranking = read_table(home / "ranking.parquet", RANKING)
    matched = matched_pairs(ranking, read_heldout(home / "heldout.json"))
    return World(
        config,
        command.composition,
        pd.concat(entries, ignore_index=True),
        variants,
        drawn,
        sample_items(table, command.certified),
        sorted(matched),
        distractors_of(config, home, of_judged, captions),
    )


def distractors_of(
    config: Config, home: Path, prompts: pd.DataFrame, captions: pd.DataFrame
) -> pd.DataFrame:
    """Return the captions among which each prompt is chosen."""
    images = read_table(config.data_folder / "images.parquet", IMAGES)
    splits = read_table(home / "splits.parquet", SPLIT)
    swapped = read_table(home / "swapped.parquet", SWAPPED)
    judged = evaluation_images(splits, images, config.judge.train_on, config.seeds.judge_half or 0)
    pools = Pools(captions, judged, swapped)
    return prompt_distractors(prompts, pools, class_names(captions), config.seed)


def entries_of(name: str, prompts: pd.DataFrame, manifest: pd.DataFrame) -> pd.DataFrame:
    """Return the entries of a generator, of all splits."""
    tables = []
    for split in prompts["split"].unique():
        with_image, _ = judged_entries(prompts, manifest, split)
        tables.append(with_image.assign(generator=name, split=split))
    return pd.concat(tables, ignore_index=True)


def drawn_adjectives(entries: pd.DataFrame, scenes: pd.DataFrame, kind: str) -> dict[str, str]:
    """Return the drawn adjective of each entry's noun, by path."""
    key = ["split", "image_id", "caption_id", "draw"]
    rows = entries.merge(scenes, on=key, suffixes=("", "_scene"))
    adjectives = {}
    for row in rows.to_dict("records"):
        noun = str(row["pair"]).partition("_")[2]
        adjectives[row["path"]] = row.get(f"{noun}:{kind}", "")
    return adjectives


# Judges


@dataclass
class Changed:
    """A judge that gets other images or texts, or whose choices are changed.

    Attributes:
        judge: which chooses.
        picture: makes the image that it gets; None: as it is.
        words: fraction of a text's words that it gets.
        noise: chance of a random choice.
        first_text: chance of choosing the first text, whatever it is.
    """

    judge: Chooser
    name: str
    folder: Path
    picture: Any = None
    words: float = 1.0
    noise: float = 0.0
    first_text: float = 0.0

    @property
    def hash(self) -> str:
        return f"{self.judge.hash} {self.name}"

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        seen = [self._image(image) for image in images]
        read = [[self._text(text) for text in texts] for texts in options]
        answers = self.judge.choose(seen, read)
        result = []
        for image, chances in zip(images, answers, strict=True):
            stream = rng(0, "judges", self.name, str(image.path), image.id)
            index = None
            if stream.random() < self.noise:
                index = int(stream.integers(len(chances)))
            if stream.random() < self.first_text:
                index = 0
            result.append(chances if index is None else np.eye(len(chances))[index])
        return result

    def _image(self, image: JudgedImage) -> JudgedImage:
        if self.picture is None:
            return image
        name = "".join(c if c.isalnum() else "_" for c in str(image.path))
        file = self.folder / f"{self.name}{name}.png"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            self.picture(image.read()).save(file, compress_level=1)
        return JudgedImage(file, image.id)

    def _text(self, text: str) -> str:
        if self.words == 1:
            return text
        words = text.split()
        # By place, so that a text and its variant keep the same ones.
        kept = rng(0, "judges", "words", len(words)).random(len(words)) < self.words
        return " ".join(word for word, is_kept in zip(words, kept, strict=True) if is_kept)


def oracle_table(world: World, file: Path) -> Chooser:
    """Write which text is true of each image, and open the table as a judge."""
    rows = []
    with_variants = world.variants.groupby(["split", "image_id", "caption_id"])
    texts = {key: dict(zip(of["adjective"], of["text"], strict=True)) for key, of in with_variants}
    for row in world.entries.to_dict("records"):
        key = (row["split"], row["image_id"], row["caption_id"])
        if key not in texts:
            continue
        drawn = world.drawn[row["path"]]
        asked = str(row["pair"]).partition("_")[0]
        # If neither text is true, there is no answer.
        text = row["text"] if drawn == asked else texts[key].get(drawn, "")
        rows.append({"id": choice_id(row), "text": text})
    pd.DataFrame(rows).to_csv(file, index=False)
    return open_judge("table", file=str(file))


class MatchingHead(torch.nn.Module):
    """A head that says whether a text matches an image, from the embeddings of both."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4 * width, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)
        )

    def forward(self, images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        both = [images, texts, images * texts, (images - texts).abs()]
        return self.layers(torch.cat(both, dim=-1))[..., 0]


@dataclass
class Matching:
    """A judge with a matching head on a CLIP's towers."""

    clip: ClipChooser
    head: MatchingHead
    name: str = "match"

    @property
    def hash(self) -> str:
        return f"{self.clip.hash} match"

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        embedder = self.clip.embedder
        of_images = embedder.images([(image.path, image.box) for image in images])
        distinct = list(dict.fromkeys(text for texts in options for text in texts))
        of_texts = dict(zip(distinct, embedder.texts(distinct), strict=True))
        answers = []
        with torch.inference_mode():
            for image, texts in zip(of_images, options, strict=True):
                vectors = np.stack([of_texts[text] for text in texts])
                copies = np.repeat(image[None], len(texts), axis=0)
                scores = self.head(torch.from_numpy(copies), torch.from_numpy(vectors))
                answers.append(chances_of_scores(scores.numpy()))
        return answers


def train_head(world: World, clip: ClipChooser) -> MatchingHead:
    """Train the head on images of train: their captions match, others and variants do not."""
    data = world.config.data_folder
    splits = read_frame(data / world.composition / "splits.parquet")
    train = splits.loc[splits["split"] == "train", "image_id"]
    captions = read_table(data / "captions.parquet", CAPTIONS)
    captions = captions[captions["image_id"].isin(train)].drop_duplicates("image_id")
    images = read_table(data / "images.parquet", IMAGES).set_index("image_id")["path"]
    paths = captions["image_id"].map(images)
    stream = rng(0, "judges", "head")
    adjectives = sorted(set(read_table(data / "pairs.parquet", PAIRS)["adjective"]))
    texts = captions["text"].tolist()
    changed = [other_adjective(text, adjectives, stream) for text in texts]
    of_images = torch.from_numpy(clip.embedder.files([world.results / path for path in paths]))
    of_texts = torch.from_numpy(clip.embedder.texts(texts))
    of_changed = torch.from_numpy(clip.embedder.texts(changed))
    with torch.random.fork_rng(()):
        torch.manual_seed(0)
        head = MatchingHead(of_images.shape[1])
        optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
        for _ in range(HEAD_STEPS):
            rows = torch.from_numpy(stream.integers(len(texts), size=HEAD_BATCH))
            others = rows.roll(1)
            pairs = ((of_texts, rows, 1.0), (of_texts, others, 0.0), (of_changed, rows, 0.0))
            loss = torch.zeros(())
            for vectors, chosen, target in pairs:
                scores = head(of_images[rows], vectors[chosen])
                expected = torch.full_like(scores, target)
                loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(scores, expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return head.eval()


def other_adjective(text: str, adjectives: Sequence[str], stream: np.random.Generator) -> str:
    """Return a text with one of its adjectives replaced by another one."""
    words = text.split()
    indices = [index for index, word in enumerate(words) if word.strip(",.") in adjectives]
    if not indices:
        return f"no {text}"
    index = indices[int(stream.integers(len(indices)))]
    words[index] = adjectives[int(stream.integers(len(adjectives)))]
    return " ".join(words)


@contextmanager
def stub_server(judge: Judge, first_text: float) -> Iterator[str]:
    """Serve a judge as a chat model that prefers the first text; yield its address."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            picture, question = request["messages"][-1]["content"]
            raw = base64.b64decode(picture["image_url"]["url"].partition(",")[2])
            lines = question["text"].split("\n")
            texts = [line.partition(". ")[2] for line in lines if line[:1].isdigit()]
            stream = rng(0, "judges", "stub", hashlib.sha256(raw).hexdigest(), *texts)
            # torch's threads are shared, and the encoder's files are not.
            with lock:
                image = judge.encode_images([(io.BytesIO(raw), None)], 1)[0]
                vectors = judge.encode_texts(texts, len(texts))
            number = 0 if stream.random() < first_text else int((vectors @ image).argmax())
            message = {"role": "assistant", "content": f"Answer: {number + 1}"}
            body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Do not print each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()


def gray(picture: Image.Image) -> Image.Image:
    return picture.convert("L").convert("RGB")


def blank(picture: Image.Image) -> Image.Image:
    return Image.new("RGB", picture.size, (128, 128, 128))


def shrunk(picture: Image.Image, side: int) -> Image.Image:
    """Return a picture with as few pixels, at its old size."""
    return picture.resize((side, side), Image.Resampling.BOX).resize(picture.size)


def untrained(world: World, folder: Path) -> Path:
    """Save a judge of the run's model with random weights; return its folder."""
    settings = world.config.judge
    captions = read_table(world.config.data_folder / "captions.parquet", CAPTIONS)["text"]
    folder.mkdir()
    save_judge(build(settings, captions.tolist(), 0), "untrained", settings.crop, folder)
    return folder


def judges(world: World, folder: Path, stack: ExitStack) -> dict[str, Chooser]:
    """Return all judges by name; those that are made worse follow the others."""
    opened = partial(open_clip_judge, world, folder, stack)
    models = world.config.data_folder / "judges"
    first, second = (opened(models / name) for name in world.config.members[:2])
    matching = Matching(first, train_head(world, first))
    plain = load_judge(models / world.config.members[0], 1, "cpu")
    address = stack.enter_context(stub_server(plain, 0.3))
    served = open_judge(
        "served",
        Context(cache=folder, closing=stack),
        url=address,
        model="stub",
        orders=2,
        limit=10**6,
        workers=2,
    )
    worse = partial(Changed, first, folder=folder / "changed")
    others = {}
    for entry in world.config.judges:
        settings = entry.settings("")
        if entry.kind == "clip":
            seed = world.config.seeds_of(settings)[0]
            model = models / f"{entry.name}-{seed}"
            others[f"clip, {entry.name}"] = opened(model)
    return {
        "clip, seed 0": first,
        "clip, seed 1": second,
        **others,
        "oracle (table)": oracle_table(world, folder / "oracle.csv"),
        "match, on clip's towers": matching,
        "served, prefers a place (30 %)": served,
        "noise 20 %": worse("noise_20", noise=0.2),
        "noise 50 %": worse("noise_50", noise=0.5),
        "noise 80 %": worse("noise_80", noise=0.8),
        "place 30 %": worse("place_30", first_text=0.3),
        "place 70 %": worse("place_70", first_text=0.7),
        "16 pixels": worse("small_16", picture=partial(shrunk, side=16)),
        "8 pixels": worse("small_8", picture=partial(shrunk, side=8)),
        "grayscale": worse("gray", picture=gray),
        "text only": worse("blank", picture=blank),
        "half of the words": worse("words", words=0.5),
        "untrained": opened(untrained(world, folder / "untrained")),
    }


def open_clip_judge(world: World, folder: Path, stack: ExitStack, model: Path) -> ClipChooser:
    context = Context(model=model, cache=folder / "cache", threads=2, closing=stack)
    chooser = open_judge("clip", context)
    assert isinstance(chooser, ClipChooser)
    return chooser


# What is measured


def measure(world: World, name: str, judge: Chooser) -> dict[str, Any]:
    """Return a judge's errors, and what its certificate says."""
    choices = choose_texts(judge, world.entries, {OF_ADJECTIVE: world.variants}, world.asker)
    anchors = {"test_seen": "usual", "test_unseen": "memorizer", "test_swapped": "memorizer"}
    table = fraction_composed(choices, "faithful", anchors, world.matched)
    is_row = (table["split"] == HELD_OUT) & (table["measure"] == "composes")
    composed = table[is_row].set_index("generator")
    row: dict[str, Any] = {"judge": name}
    errors = []
    for fraction in FRACTIONS:
        generator = f"half_{100 * fraction:.0f}"
        value = composed["value"].get(generator, np.nan)
        row[generator] = value
        # As in docs/styles.md, an estimate beyond 0 or 1 counts as 0 or 1.
        errors.append(abs(np.clip(value, 0, 1) - world.truth(generator)))
    row["error"] = float(np.mean(errors))
    row["reasons"] = "; ".join(composed["note"].dropna().unique()) if "note" in composed else ""
    is_reference = choices["generator"] == "faithful"
    row["accuracy"] = choices.loc[is_reference, "adjective_first"].mean()
    # The oracle knows drawn birds, and answers nothing else.
    if "table" not in name:
        row |= certificate_columns(certify(judge, world.certificate, folder=world.results))
    return row


def followed(world: World, judge: Chooser) -> pd.DataFrame:
    """Return prompt following of a CLIP by its choices, and its expected value by the run's
    R-precision, of each anchor and split.
    """
    entries = world.entries[world.entries["generator"].isin(ANCHORS)].reset_index(drop=True)
    choices = choose_texts(judge, entries, {OF_PROMPT: world.distractors}, world.asker)
    home = world.config.data_folder / world.composition / "scores" / world.config.members[0]
    rows = []
    for (generator, split), of_split in choices.groupby(["generator", "split"]):
        scores = read_table(home / generator / f"{split}.parquet", SCORES)
        both = of_split[[*ENTRY, OF_PROMPT]].merge(scores, on=ENTRY)
        expected = expected_top1(both["p_beaten"].to_numpy(), both["p_tied"].to_numpy(), CANDIDATES)
        rows.append((generator, split, len(both), both[OF_PROMPT].mean(), expected.mean()))
    return pd.DataFrame(rows, columns=["generator", "split", "n", "chosen", "expected"])


def followed_line(table: pd.DataFrame) -> str:
    gaps = (table["chosen"] - table["expected"]).abs()
    tau = stats.kendalltau(table["chosen"], table["expected"]).statistic
    values = f"{percent(table['chosen'].min())} to {percent(table['chosen'].max())} %"
    sizes = f"{table['n'].min():,} to {table['n'].max():,} images each"
    return (
        f"Prompt following of `clip, seed 0`, by its choices, is {values} for {len(table)} anchors "
        f"and splits ({sizes}). It differs from the exact R-precision of ten candidates by "
        f"{percent(gaps.mean(), 1)} points on average, at most {percent(gaps.max(), 1)}; Kendall's "
        f"tau of both orders is {tau:.2f}."
    )


def draw(table: pd.DataFrame, world: World, threshold: float) -> Figure:
    """Draw what passing judges find, and each judge's error by its certificate."""
    passes = passed(table, threshold)
    figure = Figure(figsize=(WIDTH, 7))
    found, errors = figure.subplots(2, 1)
    truths = [100 * world.truth(f"half_{100 * fraction:.0f}") for fraction in FRACTIONS]
    found.plot([0, 100], [0, 100], ":", color=GRAY, linewidth=1)
    looks = zip(table[passes].iterrows(), SERIES_COLORS, SERIES_MARKS, strict=False)
    for (_, row), color, mark in looks:
        values = [100 * row[f"half_{100 * fraction:.0f}"] for fraction in FRACTIONS]
        name = row["judge"]
        found.plot(truths, values, f"{mark}-", color=color, markersize=4, linewidth=1, label=name)
    found.set_xlabel("drawn, %")
    found.set_ylabel("found, %")
    certified = table[table["adjective_low"].notna() & table["error"].notna()]
    x = 100 * certified["adjective_low"]
    y = 100 * certified["error"]
    errors.axvline(100 * threshold, linestyle=":", color=GRAY, linewidth=1)
    errors.axhline(100 * TARGET, linestyle=":", color=GRAY, linewidth=1)
    errors.plot(x, y, "o", color=SERIES_COLORS[0], markersize=4)
    for number, (_, row) in enumerate(certified.sort_values("error").iterrows()):
        place = (100 * row["adjective_low"], 100 * row["error"])
        # Away from the threshold, and neighbors above and below each other.
        is_left = row["adjective_low"] <= threshold
        shift = (-4 if is_left else 4, 3 if number % 2 else -7)
        side = "right" if is_left else "left"
        name = row["judge"].partition(" (")[0]
        errors.annotate(name, place, shift, textcoords="offset points", fontsize=6, ha=side)
    errors.set_ylim(bottom=0)
    errors.margins(x=0.35)
    errors.set_xlabel("certificate, adjectives, lower end, %")
    errors.set_ylabel("mean error, points")
    return finish(
        figure, "Above: judges that pass. Dotted: the truth; the threshold, and 6 points."
    )


def certificate_columns(certificate: Certificate) -> dict[str, Any]:
    """Return the chance-corrected accuracy and the gain by the image, of each kind."""
    columns: dict[str, Any] = {}
    for kind, result in certificate.kinds.items():
        low = result.accuracy.low
        columns[kind] = chance_corrected(result.accuracy.value, result.chance)
        columns[f"{kind}_low"] = np.nan if low is None else chance_corrected(low, result.chance)
        gain = result.image_gain
        columns[f"{kind}_gain_low"] = np.nan if gain is None or gain.low is None else gain.low
    return columns


def best_threshold(table: pd.DataFrame) -> float:
    """Return the threshold of the certificate with the fewest exceptions, in the middle of the
    largest gap.
    """
    values = np.sort(table["adjective_low"].to_numpy(float))
    candidates = [values[0] - 0.01, *((values[1:] + values[:-1]) / 2), values[-1] + 0.01]
    counts = [exceptions(table, threshold) for threshold in candidates]
    best = min(counts)
    widths = np.diff([candidates[0] - 0.02, *values, candidates[-1] + 0.02])
    indices = [index for index, count in enumerate(counts) if count == best]
    return float(candidates[max(indices, key=lambda index: widths[index])])


def passed(table: pd.DataFrame, threshold: float) -> pd.Series:
    """Return which judges pass, as ``judge.certify.passes``."""
    return (table["adjective_low"] > threshold) & (table["adjective_gain_low"] > 0)


def exceptions(table: pd.DataFrame, threshold: float) -> int:
    """Return how many judges pass and are wrong, or fail and are right."""
    is_right = table["error"] <= TARGET
    return int((passed(table, threshold) != is_right).sum())


def report(world: World, table: pd.DataFrame, picture: Path) -> str:
    """Return what was measured, in Markdown, and draw it."""
    certified = table[table["adjective_low"].notna()].reset_index(drop=True)
    # Every other judge, so that both halves have good and bad ones.
    by_accuracy = certified.sort_values("adjective_low", ignore_index=True)
    first, second = by_accuracy.iloc[::2], by_accuracy.iloc[1::2]
    best = best_threshold(first)
    threshold = LEAST_ADJECTIVES
    passes = passed(table, threshold)
    with style():
        title = "What judges find of images of known truth, and their certificates"
        save(draw(table, world, threshold), picture, title)
    truths = [world.truth(f"half_{100 * fraction:.0f}") for fraction in FRACTIONS]
    drawn = " | ".join(f"{100 * truth:.0f}" for truth in truths)
    heads = " | ".join(f"{100 * fraction:.0f} %" for fraction in FRACTIONS)
    lines = [
        f"`make judges`, {len(world.entries):,} images, {platform.machine()}, "
        f"{datetime.now(UTC):%Y-%m-%d}.",
        "",
        f"| judge | {heads} | mean error, points | adjectives | binding | passes |",
        "|:--|" + "--:|" * (len(FRACTIONS) + 4),
        f"| *drawn* | {drawn} | | | | |",
    ]
    for number, row in table.iterrows():
        cells = [percent(row[f"half_{100 * fraction:.0f}"]) for fraction in FRACTIONS]
        cells += [percent(row["error"], 1)]
        cells += [percent(row.get(kind, np.nan)) for kind in ("adjective", "binding")]
        is_certified = pd.notna(row["adjective_low"])
        cells.append("–" if not is_certified else "yes" if passes[number] else "no")
        lines.append(f"| {row['judge']} | {' | '.join(cells)} |")
    lines += [
        "",
        "![What judges find of images of known truth, and their certificates](pictures/judges.svg)",
        "",
        f"A judge passes if the lower end of its accuracy is above {threshold:.2f}. An exception "
        f"passes with an error above {100 * TARGET:.0f} points, or fails with a smaller one: "
        f"{exceptions(first, threshold)} of {len(first)} judges ({', '.join(first['judge'])}) and "
        f"{exceptions(second, threshold)} of the other {len(second)}. The best threshold of the "
        f"first half, {best:.2f}, has {exceptions(first, best)} and {exceptions(second, best)}.",
    ]
    return "\n".join(lines)


def percent(value: Any, decimals: int = 0) -> str:
    return "–" if pd.isna(value) else f"{100 * value:.{decimals}f}"


def main(command: Judges) -> None:
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        world = read_world(command, folder)
        rows = []
        for name, judge in judges(world, folder, stack).items():
            rows.append(measure(world, name, judge))
            print(rows[-1], flush=True)
            if name == "clip, seed 0":
                following = followed_line(followed(world, judge))
                print(following, flush=True)
        table = pd.DataFrame(rows)
        picture = PICTURE if command.write else folder / PICTURE.name
        text = f"{report(world, table, picture)}\n\n{following}"
    print(text)
    if command.write:
        page = DOCUMENT.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        _, after = rest.split(END)
        write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", DOCUMENT)


if __name__ == "__main__":
    cli.run(main)
