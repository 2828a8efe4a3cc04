"""Ask a judge to choose each prompt's adjective, and the prompt itself, for generators' images."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import PlainValidator

from compclip.clip.embed import BoxedFile
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.seeds import rng
from compclip.core.settings.arguments import (
    Variants,
    Whole,
    check_texts,
    need,
    read_counts,
    read_ids,
    refuse,
    require_joined,
    suspects,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY, TESTS
from compclip.judge.chooser import Chooser, JudgedImage, check_chances
from compclip.score.choices import options_of
from compclip.score.entries import ENTRY

# A pair's name: an adjective and a noun, which may have several words.
PAIR = "[^_]+_.+"
# Choices asked at once, after which the progress is shown.
ASKED_AT_ONCE = 1024
# The columns of entries that name an image in a run; a table without generators has one.
IMAGE_KEY = ["generator", "split", *ENTRY]
# What is asked of an image: its prompt among variants in one adjective, or among captions of other
# images. These are also the columns of the answers.
OF_ADJECTIVE = "adjective_first"
OF_PROMPT = "prompt_first"
# For each of these, the texts beside each prompt's own: split, image_id, caption_id, text, and
# adjective for variants.
Others = Mapping[str, pd.DataFrame]
# Above this fraction of choices without a usable answer, the log warns, and verdicts say so first.
MOST_UNANSWERED = 0.02


@dataclass(frozen=True)
class Question:
    """What a judge is asked of an image: among texts that differ in one adjective, or captions.

    Attributes:
        row: the number of the entry.
        column: what is asked, ``OF_ADJECTIVE`` or ``OF_PROMPT``.
        texts: the prompt's text, then the others.
        adjectives: of the texts; None if the variants have none.
        order: (k,) the texts' order as the judge gets them, drawn by seed.
    """

    row: int
    column: str
    image: JudgedImage
    texts: Sequence[str]
    adjectives: Sequence[str] | None
    order: np.ndarray

    @property
    def shown(self) -> list[str]:
        """The texts in the order in which the judge gets them."""
        return [self.texts[index] for index in self.order]


def choice_id(row: Mapping[str, Any]) -> str:
    """Return the id of an entry's choice of an adjective, unique in a composition."""
    return "/".join(str(row[name]) for name in IMAGE_KEY)


@dataclass(frozen=True)
class Asker:
    """Makes the questions of entries.

    Attributes:
        find_item: maps a path to a file and its box.
        seed: draws the order of the texts.
    """

    find_item: Callable[[str], BoxedFile] = lambda path: (Path(path), None)
    seed: int = 0

    def questions(self, entries: pd.DataFrame, options: Others) -> Iterator[Question]:
        """Yield the questions of each entry with an image and other texts.

        Args:
            entries: columns of ``IMAGE_KEY``, pair, text and path, which is missing without an
                image.
        """
        for column, table in options.items():
            yield from self._questions(entries, table, column)

    def _questions(
        self, entries: pd.DataFrame, table: pd.DataFrame, column: str
    ) -> Iterator[Question]:
        numbered = entries.assign(row=range(len(entries))).dropna(subset="path")
        for split, of_split in numbered.groupby("split", sort=False):
            # Texts of other splits are distractors or variants of other prompts.
            options = options_of(of_split, str(split), table)
            n = len(of_split)
            ends = np.cumsum(np.bincount(options.entry, minlength=n))
            for entry, row in enumerate(of_split.to_dict("records")):
                first = ends[entry - 1] if entry else 0
                # The prompt's row among texts and adjectives, then those of the other texts.
                rows = [entry, *range(n + first, n + ends[entry])]
                if len(rows) == 1:
                    continue
                texts = [options.texts[options.text_rows[row_number]] for row_number in rows]
                # A text that is listed twice could be right and wrong.
                fault = f"two equal texts among {texts}"
                require(len(set(texts)) == len(texts), choice_id(row), fault, "remove one")
                adjectives = None
                if options.adjectives is not None:
                    adjectives = [options.adjectives[row_number] for row_number in rows]
                image = self._image(row, column)
                order = rng(self.seed, "options", image.id).permutation(len(texts))
                yield Question(row["row"], column, image, texts, adjectives, order)

    def _image(self, row: Mapping[str, Any], column: str) -> JudgedImage:
        path, box = self.find_item(row["path"])
        name = choice_id(row)
        if column == OF_PROMPT:
            # Asked once, because it is asked for each image, and answers may cost money.
            return JudgedImage(path, f"{name}/prompt", box, orders=1)
        return JudgedImage(path, name, box)


def ask(chooser: Chooser, questions: Sequence[Question], entries: pd.DataFrame) -> pd.DataFrame:
    """Return the entries with what the judge chooses.

    Returns:
        Columns of ``IMAGE_KEY``, pair, adjectives (the number of variants and the prompt),
        adjective_first and prompt_first (the chance of the prompt's own text; missing where there
        is no other), adjective_chosen, and answered (whether an adjective was chosen).
    """
    if hasattr(chooser, "prepare"):
        # Kinds check here what they will be asked, such as its number, before the first answer.
        images = [question.image for question in questions]
        chooser.prepare(images, [question.shown for question in questions])
    n = len(entries)
    first = {column: np.full(n, np.nan) for column in (OF_ADJECTIVE, OF_PROMPT)}
    counts = np.ones(n, int)
    answered = np.ones(n, bool)
    chosen = np.full(n, None, object)
    unanswered = []
    for question, chances in answers_of(chooser, questions):
        # Back to the order of the texts; the first is the prompt's own.
        of_texts = np.empty(len(chances))
        of_texts[question.order] = chances
        first[question.column][question.row] = of_texts[0]
        # All chances are 0 where there is no usable answer.
        if not chances.any():
            unanswered.append(question.image.id)
        if question.column == OF_PROMPT:
            continue
        counts[question.row] = len(chances)
        answered[question.row] = chances.any()
        if question.adjectives is not None and chances.any():
            # The own text wins a tie, as in ``choices.ranked_first``.
            chosen[question.row] = question.adjectives[int(of_texts.argmax())]
    log_unanswered(chooser, unanswered, len(questions))
    return entries[[*IMAGE_KEY, "pair"]].assign(
        adjectives=counts,
        **first,
        adjective_chosen=pd.Series(chosen, index=entries.index, dtype="str"),
        answered=answered,
    )


def answers_of(
    chooser: Chooser, questions: Sequence[Question]
) -> Iterator[tuple[Question, np.ndarray]]:
    """Yield each question with the chances of its texts, in the order in which they are shown."""
    with Progress(len(questions), "choices") as progress:
        for start in range(0, len(questions), ASKED_AT_ONCE):
            block = questions[start : start + ASKED_AT_ONCE]
            shown = [question.shown for question in block]
            answers = chooser.choose([question.image for question in block], shown)
            yield from zip(block, check_chances(chooser, answers, shown), strict=True)
            progress.add(len(block))


def log_unanswered(chooser: Chooser, unanswered: Sequence[str], n_questions: int) -> None:
    """Log how many questions have no usable answer, and the first of them."""
    if not unanswered:
        return
    fault = "choices without a usable answer count as wrong, the first"
    counts = (chooser.name, len(unanswered), n_questions, fault, unanswered[0])
    write = log.warning if len(unanswered) > MOST_UNANSWERED * n_questions else log.info
    write("%s: %d of %d %s %s", *counts)


def count_others(entries: pd.DataFrame, texts: pd.DataFrame) -> np.ndarray:
    """Return (n,): the number of other texts of each entry's prompt."""
    keys = ["split", *CAPTION_KEY]
    counts = texts.groupby(keys).size().rename("texts").reset_index()
    return entries[keys].merge(counts, on=keys, how="left")["texts"].fillna(0).to_numpy(int)


def choose_texts(
    chooser: Chooser, entries: pd.DataFrame, options: Others, asker: Asker
) -> pd.DataFrame:
    """Do the same as ``choose`` without its checks, for the entries of a run."""
    table = ask(chooser, list(asker.questions(entries, options)), entries)
    # Entries without an image are wrong, if their prompt has other texts.
    is_failed = entries["path"].isna().to_numpy()
    for column, texts in options.items():
        n_others = count_others(entries, texts)
        is_wrong = is_failed & (n_others > 0)
        table[column] = table[column].mask(is_wrong, 0.0)
        if column == OF_ADJECTIVE:
            table["adjectives"] = np.where(is_wrong, n_others + 1, table["adjectives"])
    return table


def as_entries(entries: Any) -> pd.DataFrame:
    """Return entries of a user with all columns of ``IMAGE_KEY``; ValueError or UserError name what
    is wrong.
    """
    need(isinstance(entries, pd.DataFrame), "expected a pandas.DataFrame")
    defaults = {"generator": "images", "split": TESTS[0], "draw": 0, "caption_id": 0}
    absent = {name: value for name, value in defaults.items() if name not in entries}
    complete = entries.assign(**absent)
    missing = [name for name in ("image_id", "text", "pair", "path") if name not in complete]
    require(not missing, "entries", f"no column {', '.join(missing)}", "add it")
    # Captions of several generators repeat, so they are checked here.
    complete = complete.reset_index(drop=True)
    need(complete.columns.is_unique, "two columns have one name")
    complete["image_id"] = read_ids(complete["image_id"], "column image_id: ")
    for name in ("caption_id", "draw"):
        complete[name] = read_counts(complete[name], f"column {name}: ")
    pairs = complete["pair"].dropna().astype(str)
    refuse(~pairs.str.fullmatch(PAIR), pairs, "adjective_noun", "column pair: ")
    paths = complete["path"].dropna()
    refuse(~paths.map(is_path), paths, "a path", "column path: ")
    check_texts(suspects(complete["text"].fillna("")), "column text: ")
    repeat = complete.duplicated(IMAGE_KEY)
    first = complete.loc[repeat, IMAGE_KEY].head(1).to_dict("records")
    require(not first, "entries", f"duplicate {first}", "remove one")
    unknown = complete.loc[~complete["split"].isin(TESTS), "split"].head(1).tolist()
    require(not unknown, "entries", f"split {unknown}", f"expected one of {', '.join(TESTS)}")
    return complete


def with_split(variants: pd.DataFrame) -> pd.DataFrame:
    """Return variants with the column split, that of entries without one by default."""
    return variants if "split" in variants else variants.assign(split=TESTS[0])


def is_path(value: object) -> bool:
    return isinstance(value, str | Path)


ImageEntries = Annotated[Any, PlainValidator(as_entries)]


@checked
def choose(
    judge: Chooser, entries: ImageEntries, variants: Variants, seed: Whole = 0
) -> pd.DataFrame:
    """Ask any judge to choose each prompt's adjective.

    Args:
        judge: a ``compclip.judge.chooser.Chooser``, as ``open_judge`` returns it.
        entries: a row for each image: image_id, text (what it was made from), pair
            (``adjective_noun``), path (missing: no image, which counts as wrong), and optionally
            generator, split, caption_id and draw.
        variants: as ``make_variants`` returns them: the texts beside the prompt's own.
        seed: draws the order in which the judge gets the texts.

    Returns:
        A row for each entry: its keys, ``adjective_first`` (the chance that the judge chooses its
        own text; missing without variants), ``adjective_chosen``, ``adjectives`` (the number of
        texts) and ``answered``. The mean of ``adjective_first`` is the adjective accuracy;
        ``fraction_composed`` takes the table.

    Raises:
        UserError: an argument is refused, or the judge's answers do not fit.
    """
    key_and_text = [*CAPTION_KEY, "text"]
    require_joined(entries[key_and_text], "entries", variants=variants)
    options: Others = {OF_ADJECTIVE: with_split(variants)}
    return choose_texts(judge, entries, options, Asker(seed=seed)).drop(columns=OF_PROMPT)


@checked
def list_options(
    entries: ImageEntries, variants: Variants, file: str | Path, seed: Whole = 0
) -> int:
    """Write what a judge is asked as JSON lines, for another tool, whose answers kind ``table``
    reads.

    Args:
        entries, variants, seed: as of ``choose``.
        file: the file to write: id, image (a path) and texts of each choice.

    Returns:
        The number of choices.
    """
    from compclip.core.artifacts.files import write_text

    require_joined(entries[[*CAPTION_KEY, "text"]], "entries", variants=variants)
    options: Others = {OF_ADJECTIVE: with_split(variants)}
    lines = option_lines(Asker(seed=seed).questions(entries, options))
    require(
        lines, "entries", "no image whose prompt has variants", "give variants of these prompts"
    )
    write_text("\n".join(lines) + "\n", Path(file))
    return len(lines)


def option_lines(questions: Iterable[Question]) -> list[str]:
    """Return a line of JSON for each question."""
    lines = []
    for question in questions:
        line = {"id": question.image.id, "image": str(question.image.path)}
        lines.append(json.dumps(line | {"texts": question.shown}, ensure_ascii=False))
    return lines
