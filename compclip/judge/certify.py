"""Certify a judge: how often it chooses the right text of an image over wrong ones, by kind of
wrong text.

Two controls show what an accuracy is worth. *Text-only*: the same choices for a gray image. Wrong
texts may read less fluently than right ones, so that a judge may choose well without the image
(Hsieh et al. 2023, SugarCrepe). *Order-only*: the right text first, and last. A judge may prefer a
place, so that its accuracy is the mean of both orders.

An *item* is right if each of its right texts is chosen over all of its wrong ones, and of several
images each (Winoground's text score). An item of kind ``synonym`` has two right texts with the same
meaning, and is right if the choice does not depend on which of them is offered. Chance is that of a
judge that gives each text a random score.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.errors import require
from compclip.core.seeds import rng
from compclip.core.settings.arguments import Whole
from compclip.core.settings.calls import checked
from compclip.judge.certificate_tables import ADJECTIVE, SYNONYM, check_certificate_table
from compclip.judge.chooser import Chooser, JudgedImage, check_chances
from compclip.stats.estimates import compare_scores, estimate_score
from compclip.stats.interval import Estimate
from compclip.stats.paired import holm, mcnemar

# Least lower end of the chance-corrected accuracy on adjectives with which a judge gives verdicts:
# chosen by `make judges` in its first run; docs/judges.md says how far it holds in another one.
LEAST_ADJECTIVES = 0.52
# Items of each kind in a run: enough for intervals of about 3 points, few enough to pay for.
ITEMS = 300
# Right texts of an item of each kind together: a synonym has two.
RIGHT_TEXTS = 5
# An image that shows nothing.
GRAY = (128, 128, 128)
GRAY_SIZE = (224, 224)


@dataclass(frozen=True)
class KindResult:
    """The results of one kind of wrong texts; intervals are over images.

    Attributes:
        n: number of items.
        accuracy: the mean over both orders; an unanswered item counts as wrong.
        chance: the accuracy of a judge that gives each text a random score.
        unanswered: items without a usable answer to some question.
        text_only: the accuracy for a gray image, over the items that are answered there; None
            without any.
        image_gain: accuracy minus ``text_only``, over the same items.
        order_effect: ``right_first`` minus ``right_last``, the accuracies by the right text's
            place.
    """

    n: int
    images: int
    accuracy: Estimate
    chance: float
    unanswered: int
    text_only: Estimate | None
    text_only_unanswered: int
    image_gain: Estimate | None
    right_first: Estimate
    right_last: Estimate
    order_effect: Estimate


@dataclass(frozen=True, eq=False)  # compared by identity, since tables have no equality
class Certificate:
    """What a judge chose on a table of right and wrong texts.

    Attributes:
        table_hash: changes with the table's content.
        items: a row for each item: item, kind, image, chance, right_first, right_last, accuracy,
            text_only (NaN if unanswered), unanswered.
    """

    judge: str
    judge_hash: str
    table_hash: str
    seed: int
    kinds: Mapping[str, KindResult]
    items: pd.DataFrame


@checked
def certify(
    chooser: Chooser, table: pd.DataFrame, seed: Whole = 0, folder: str | Path = ""
) -> Certificate:
    """Ask a judge for the text of each image, with the image and without, in two orders.

    Args:
        chooser: the judge, which is asked four times for each right text.
        table: as ``check_certificate_table`` takes it.
        seed: of the order of several wrong texts.
        folder: what the paths of images are relative to.

    Raises:
        UserError: the table is faulty, or the judge's answers are.
    """
    table = check_certificate_table(table)
    questions = _questions(table, seed, Path(folder))
    right_first = _ask(chooser, questions, position=0)
    right_last = _ask(chooser, questions, position=-1)
    with TemporaryDirectory() as temporary:
        gray_image = _gray_image(Path(temporary))
        # A box would reach beyond the gray image.
        gray = questions.assign(path=gray_image, box=None)
        gray_first = _ask(chooser, gray, position=0)
        gray_last = _ask(chooser, gray, position=-1)
    items = _items(table).assign(
        right_first=right_first.fillna(0),
        right_last=right_last.fillna(0),
        text_only=(gray_first + gray_last) / 2,
        unanswered=right_first.isna() | right_last.isna(),
    )
    items["accuracy"] = (items["right_first"] + items["right_last"]) / 2
    kinds = {str(kind): _result(rows) for kind, rows in items.groupby("kind", sort=False)}
    # The digest of what was asked, so that only the same questions are compared.
    content = json.dumps(table.to_dict("records"))
    table_hash = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    items = items.reset_index(names="item")
    return Certificate(chooser.name, chooser.hash, table_hash, seed, kinds, items)


def _gray_image(folder: Path) -> Path:
    """Write the gray image, and return its path."""
    from PIL import Image  # only with extra ``clip``

    path = folder / "gray.png"
    Image.new("RGB", GRAY_SIZE, GRAY).save(path)
    return path


def _questions(table: pd.DataFrame, seed: int, folder: Path) -> pd.DataFrame:
    """Return a row for each right text, with ``texts``: itself, followed by all wrong ones."""
    rows = []
    for row in table.itertuples(index=False):
        # A stream for each row, so that a change of one leaves the others as they are.
        generator = rng(seed, "certify", row.item, row.image)
        wrong = generator.permutation(np.array(row.wrong, dtype=object)).tolist()
        for right in row.right:
            texts = [right, *wrong]
            rows.append((row.item, row.kind, folder / row.image, row.box, texts))
    return pd.DataFrame(rows, columns=["item", "kind", "path", "box", "texts"])


def _ask(chooser: Chooser, questions: pd.DataFrame, position: int) -> pd.Series:
    """Return each item's accuracy, NaN if a question of it is unanswered, with the right text at
    the first ``position`` (0) or the last (-1).
    """
    step = 1 if position == 0 else -1
    options = [texts[::step] for texts in questions["texts"]]
    images = []
    for number, (path, box) in enumerate(zip(questions["path"], questions["box"], strict=True)):
        # Unique over all calls for a certificate.
        name = f"{path.name}/{number}/{position}"
        images.append(JudgedImage(path, name, box))
    answers = check_chances(chooser, chooser.choose(images, options), options)
    right = np.array([chances[position] for chances in answers])
    # All chances are 0 where there is no usable answer.
    is_answered = [bool(chances.any()) for chances in answers]
    right = np.where(is_answered, right, np.nan)
    answered = questions.assign(right=right, not_right=1 - right)
    by_item = answered.groupby("item", sort=False)
    all_right = by_item["right"].prod(skipna=False)
    # Synonyms agree, too, if neither is chosen.
    none_right = by_item["not_right"].prod(skipna=False)
    is_synonym = by_item["kind"].first() == SYNONYM
    return all_right + none_right.where(is_synonym, 0)


def _items(table: pd.DataFrame) -> pd.DataFrame:
    """Return the kind, the first image and the chance of each item, by item."""
    n_right = table["right"].map(len)
    n_wrong = table["wrong"].map(len)
    n_texts = n_right + n_wrong
    # Of all orders of scores, the fraction in which all right texts precede all wrong ones.
    chance = 1 / n_texts.combine(n_right, math.comb)
    # If a wrong text has the highest score, synonyms agree.
    agreed = (n_wrong / n_texts).where(table["kind"] == SYNONYM, 0)
    by_item = table.assign(chance=chance + agreed).groupby("item", sort=False)
    # Images are scored independently.
    return by_item.agg({"kind": "first", "image": "first", "chance": "prod"})


def _result(items: pd.DataFrame) -> KindResult:
    images = items["image"]
    # A served judge may refuse to choose for a gray image, which tells nothing about the texts.
    answered = items.dropna(subset="text_only")
    text_only = image_gain = None
    if len(answered):
        text_only = _mean(answered["text_only"], answered["image"])
        image_gain = _difference(answered["accuracy"], answered["text_only"], answered["image"])
    return KindResult(
        n=len(items),
        images=images.nunique(),
        accuracy=_mean(items["accuracy"], images),
        chance=float(items["chance"].mean()),
        unanswered=int(items["unanswered"].sum()),
        text_only=text_only,
        text_only_unanswered=len(items) - len(answered),
        image_gain=image_gain,
        right_first=_mean(items["right_first"], images),
        right_last=_mean(items["right_last"], images),
        order_effect=_difference(items["right_first"], items["right_last"], images),
    )


def _mean(values: pd.Series, images: pd.Series) -> Estimate:
    # The interval for other images; items have no pairs to resample.
    score = estimate_score(values, images)
    return Estimate(score.value, score.same_pairs_low, score.same_pairs_high)


def _difference(a: pd.Series, b: pd.Series, images: pd.Series) -> Estimate:
    difference = compare_scores(a, b, images)
    return Estimate(difference.value, difference.same_pairs_low, difference.same_pairs_high)


def describe(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate without its items, for JSON."""
    kinds = {kind: asdict(result) for kind, result in certificate.kinds.items()}
    hashes = {"judge_hash": certificate.judge_hash, "table_hash": certificate.table_hash}
    return {"judge": certificate.judge, **hashes, "passes": passes(certificate), "kinds": kinds}


def chance_corrected(accuracy: float, chance: float) -> float:
    """Return an accuracy on the scale where chance is 0 and a judge without errors is 1."""
    return (accuracy - chance) / (1 - chance)


def passes(certificate: Certificate, threshold: float = LEAST_ADJECTIVES) -> bool:
    """Return whether a judge may judge.

    The lower end of the chance-corrected accuracy of kind ``adjective``, which every score asks
    for, exceeds ``threshold``, and the judge is clearly better with the image than without. A judge
    that answers nothing without the image lacks this control, and fails.
    """
    if ADJECTIVE not in certificate.kinds:
        return False
    result = certificate.kinds[ADJECTIVE]
    low = result.accuracy.low
    # A single image has no interval. NaN exceeds nothing.
    if low is None or not chance_corrected(low, result.chance) > threshold:
        return False
    # Also on texts that read alike, a judge must see the image.
    gain = result.image_gain
    return gain is not None and gain.low is not None and gain.low > 0


def compare_certificates(items_by_judge: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare judges on the same items, by kind.

    An item is right for McNemar's test if its accuracy is above 1/2: a judge that chooses by place
    is right in one of two orders, and so has no such item. The test takes items as independent; the
    interval takes images.

    Args:
        items_by_judge: ``Certificate.items`` of at least two judges. Of several members, their
            accuracies are averaged.

    Returns:
        A row for each kind and two judges ``a`` and ``b``: ``difference`` of accuracies, a minus b,
        with ``low`` and ``high``; ``only_a`` and ``only_b``, the items that only one has right;
        ``n``; McNemar's exact ``p``, and ``p_holm``, the same by Holm's method over all rows.

    Raises:
        UserError: fewer than two judges, or certificates of different items.
    """
    names = list(items_by_judge)
    require(len(names) > 1, "items_by_judge", "fewer than two judges", "give at least two")
    columns = {"kind": "first", "image": "first", "chance": "first", "accuracy": "mean"}
    means = {
        name: items.groupby("item", sort=False).agg(columns)
        for name, items in items_by_judge.items()
    }
    first = means[names[0]]
    fault = "certificates of different items"
    for name in names[1:]:
        is_same = _asked(first) == _asked(means[name])
        require(is_same, name, fault, "certify all judges on one table")
    rows = []
    for kind in dict.fromkeys(first["kind"]):
        for a, b in combinations(names, 2):
            row = _compare(means[a], means[b], kind)
            rows.append({"kind": kind, "a": a, "b": b, **row})
    return pd.DataFrame(rows).assign(p_holm=holm([row["p"] for row in rows]))


def _asked(items: pd.DataFrame) -> list[list[Any]]:
    """Return the name, kind, image and chance of each item, rounded as in files."""
    return items.drop(columns="accuracy").round(DECIMALS).reset_index().to_numpy().tolist()


def _compare(a: pd.DataFrame, b: pd.DataFrame, kind: str) -> dict[str, Any]:
    # Certificates of one table have the same items, in the same order.
    is_kind = a["kind"] == kind
    a_accuracy = a.loc[is_kind, "accuracy"]
    b_accuracy = b.loc[is_kind, "accuracy"]
    difference = _difference(a_accuracy, b_accuracy, a.loc[is_kind, "image"])
    a_right = a_accuracy.to_numpy() > 0.5
    b_right = b_accuracy.to_numpy() > 0.5
    row: dict[str, Any] = {"difference": difference.value}
    row |= {"low": difference.low, "high": difference.high}
    row["only_a"] = int((a_right & ~b_right).sum())
    row["only_b"] = int((b_right & ~a_right).sum())
    row["n"] = len(a_right)
    row["p"] = mcnemar(a_right, b_right)
    return row
