"""Example captions of nouns, or descriptions of them: from a file, or asked of a language model.

The file is JSON, {"garden hose": ["…", "…"]}, or a table (CSV, TSV, JSON lines, Parquet) with a row a caption and the
columns compound and caption (description). What it lacks is asked of the model behind --address, any server that
speaks as OpenAI's does (a local one too). Its key comes from an environment variable and is written nowhere. Each
answer is kept as it comes: a run that ends early, by whatever cause, is resumed by running again.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), section 4; descriptions
after Menon and Vondrick, "Visual Classification via Description from Large Language Models" (ICLR 2023).
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_scripts.compun.chat import BadAnswer, Chat, Stopped
from workflow_scripts.compun.compounds import joined, plain, read_list
from workflow_scripts.compun.compounds import key as fold
from workflow_scripts.core import cli
from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.records import read_records
from workflow_scripts.core.tables import COMPOUNDS

# Names that one line of an error holds.
SHOWN = 5
# Characters of a text beyond which it is no caption.
LONGEST = 1000
# Of English text, roughly.
CHARACTERS_A_TOKEN = 4
TOKENS_A_TEXT = 15


@dataclass(frozen=True)
class Kind:
    """What is asked for. ``one``, ``many``: its names; ``words``: of one, at most; ``most``: of a noun, that count."""

    one: str
    many: str
    words: int
    most: int
    # Of a noun, in a file, at least; None: as many as are asked for.
    least: int | None
    wish: str
    example: tuple[str, ...]

    def instruction(self, noun: str, count: int) -> str:
        """What the model is told: the paper's instruction in other words, with the form of the answer."""
        wish = self.wish.format(count=count, words=self.words, noun=f'"{noun}"')
        example = json.dumps({self.many: self.example[:count]}, ensure_ascii=False)
        return f'{wish}\nAnswer with JSON alone, in this form; here the noun is "garden hose":\n{example}'

    def schema(self, count: int) -> dict[str, Any]:
        texts = {"type": "array", "items": {"type": "string"}, "minItems": count, "maxItems": count}
        return {
            "type": "object",
            "properties": {self.many: texts},
            "required": [self.many],
            "additionalProperties": False,
        }


KINDS = {
    "captions": Kind(
        "caption",
        "captions",
        words=10,
        most=7,  # the paper's table 2 goes so far
        least=None,
        wish=(
            "Write {count} different captions, each of a photo in which {noun} is seen. A caption is a single line of "
            "at most {words} words and names {noun}. Let the scenes be as unlike as possible: in each, {noun} is "
            "somewhere else, described by other adjectives, and something else is done with it, by another verb."
        ),
        example=(
            "Green garden hose coiled neatly beside a wooden shed.",
            "Laughing children spraying each other with a garden hose.",
            "Gardener dragging a long garden hose across dry grass.",
            "Leaking garden hose flooding a sunny brick patio.",
            "Firefighter rinsing muddy boots under an old garden hose.",
            "Dog proudly chewing a punctured yellow garden hose.",
            "Shopkeeper hanging a brand-new garden hose on display.",
        ),
    ),
    "descriptions": Kind(
        "description",
        "descriptions",
        words=10,
        most=20,
        least=1,
        wish=(
            "By what does one tell {noun} in a photo? Name {count} different features that can be seen: shapes, parts, "
            "colors, materials, surroundings. A feature is a phrase of at most {words} words, without the noun itself."
        ),
        example=(
            "a long flexible tube",
            "green or yellow rubber",
            "a metal nozzle at one end",
            "loops coiled on the ground or on a reel",
            "water spraying from its end",
            "a threaded brass coupling",
            "lawn, flower beds or a tap nearby",
        ),
    ),
}


@dataclass(frozen=True)
class Answer:
    """Of one noun: the texts, the model as the server names it, and how often was asked."""

    texts: list[str]
    model: str
    tries: int


@dataclass
class Given:
    """What a file holds: the texts of nouns, names that were not asked for; texts left out, for they stand there twice
    or are beyond ``Kind.most``."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    repeated: int = 0
    beyond: int = 0


def check_texts(texts: Any, count: int) -> list[str]:
    """At least ``count`` different lines of text, spaces made single; ValueError, which says what is wrong, else."""
    if not isinstance(texts, list):
        raise ValueError("not a list")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a list of other things than texts")
    lines = [" ".join(text.split()) for text in texts]
    for line in lines:
        if not line:
            raise ValueError("a text is empty")
        if not line.isprintable():
            raise ValueError(f"a character that cannot be printed in {ascii(line[:40])}")
    twice = [line for line, n in Counter(line.casefold() for line in lines).items() if n > 1]
    if twice:
        raise ValueError(f"{twice[0][:60]!r} stands there twice")
    if len(lines) < count:
        raise ValueError(f"{len(lines)} of {count}")
    return lines


def read_answer(text: str, kind: Kind, count: int) -> list[str]:
    """The first ``count`` texts of a model's answer: JSON, ``{"captions": […]}`` or the bare list.

    What a model thinks aloud before is passed over, and prose around the only fenced block, or the only object.
    Raises BadAnswer.
    """
    content = _json_in(text.rpartition("</think>")[2].strip())
    if isinstance(content, dict):
        if kind.many not in content:
            raise BadAnswer(f"without the key {kind.many!r}")
        content = content[kind.many]
    try:
        texts = check_texts(content, count)[:count]
    except ValueError as error:
        raise BadAnswer(str(error)) from None
    if any(len(line) > LONGEST for line in texts):
        raise BadAnswer(f"a {kind.one} of more than {LONGEST:,} characters")
    return texts


def _json_in(text: str) -> Any:
    """All of ``text`` as JSON, else its only fenced block, else what stands between its outermost braces."""
    fenced = re.findall(r"```\w*\s(.*?)```", text, flags=re.DOTALL)
    braced = re.search(r"\{.*\}", text, flags=re.DOTALL)
    for part in (text, *(fenced if len(fenced) == 1 else []), *([braced[0]] if braced else [])):
        try:
            return json.loads(part)
        except (ValueError, RecursionError):
            continue
    raise BadAnswer(f"not JSON: {text[:60]!r}")


def mentions(text: str, noun: str) -> bool:
    """Whether ``text`` names ``noun``: case, spaces and hyphens aside, an ending allowed (``snowballs``)."""
    return joined(noun) in joined(text)


# Files


def read_nouns(path: Path) -> tuple[list[str], int]:
    """Distinct nouns in their order, and how many compounds were left out since an image of theirs is missing.

    From compounds.parquet, or a list as ``compounds.read_list`` reads it (of classes, say). Raises UserError.
    """
    if path.suffix.lower() == ".parquet":
        table = read_table(path, COMPOUNDS, ["compound", "complete"])
        nouns, incomplete = table.loc[table["complete"], "compound"].tolist(), int((~table["complete"]).sum())
    else:
        nouns, incomplete = read_list(path)["compound"].tolist(), 0
    if not nouns:
        raise UserError(f"{path}: nothing to caption: of all {incomplete} compounds an image is missing")
    return nouns, incomplete


def read_given(path: Path, nouns: Sequence[str], kind: Kind, count: int) -> Given:
    """The texts that a file has of ``nouns``; a name is taken in another case where only one in the file fits.

    Raises UserError for a file of another form, and for texts that are too few or no texts.
    """
    found = _read_mapping(path) if path.suffix.lower() == ".json" else None
    if found is None:
        rows, bad = read_records(path, ["compound", kind.one])
        if bad:
            raise UserError(f"{path}: {bad[0]}")
        found = {}
        for where, name, text in zip(rows["where"], rows["compound"], rows[kind.one], strict=True):
            if name is None or text is None:
                raise UserError(f"{path}: {where}: without a compound or a {kind.one}")
            found.setdefault(plain(name), []).append(text)
    folded: dict[str, list[str]] = {}
    for name in found:
        folded.setdefault(fold(name), []).append(name)
    least = count if kind.least is None else kind.least
    given, used = Given(), set()
    for noun in nouns:
        names = [noun] if noun in found else folded.get(fold(noun), [])
        if len(names) > 1:
            raise UserError(f"{path}: both {names[0]!r} and {names[1]!r} may be {noun!r}: write one as {noun!r}")
        if not names:
            continue
        try:
            texts = check_texts(_distinct(found[names[0]]), least)
        except ValueError as error:
            raise UserError(f"{path}: {names[0]!r}: {error}: mend its {kind.many}") from None
        given.texts[noun] = texts[: kind.most]
        given.repeated += len(found[names[0]]) - len(texts)
        given.beyond += len(texts[kind.most :])
        used.add(names[0])
    given.unused = sorted(set(found) - used)
    return given


def _distinct(texts: Any) -> Any:
    """The first of those that differ in case and spaces alone; what is no list of texts as it is."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return texts
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(fold(text), text)
    return list(first.values())


def _read_mapping(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where the file is a list of objects, which ``read_records`` reads."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [plain(name) for name, _ in pairs]
        twice = [name for name, n in Counter(names).items() if n > 1]
        if twice:
            raise UserError(f"{path}: {twice[0]!r} stands there twice: keep one")
        return dict(zip(names, (texts for _, texts in pairs), strict=True))

    try:
        content = json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=once)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error})") from None
    if isinstance(content, list):
        return None
    if not isinstance(content, dict):
        raise UserError(f'{path}: must be as {{"garden hose": ["…", "…"]}}')
    return content


# The model


def ask_noun(chat: Chat, noun: str, kind: Kind, count: int, tries: int) -> Answer:
    """Ask, and ask again with what was wrong, ``tries`` times in all; BadAnswer with the last answer's fault."""
    question = {"role": "user", "content": kind.instruction(noun, count)}
    messages = [question]
    for attempt in range(1, tries + 1):
        reply = None
        try:
            reply = chat.ask(messages, kind.schema(count))
            # Cleaned once more: JSON can write the key's characters in another way.
            return Answer([chat.clean(t) for t in read_answer(reply.text, kind, count)], reply.model, attempt)
        except BadAnswer as fault:
            last, messages = BadAnswer(chat.clean(str(fault))), [question]
        if reply is not None:
            again = f"That is not what was asked for ({last}). Answer again: JSON alone, {count} different {kind.many}."
            messages += [{"role": "assistant", "content": reply.text}, {"role": "user", "content": again}]
    raise last


def cache_key(chat: Chat, noun: str, kind: Kind, count: int) -> bytes:
    """Over everything that an answer depends on; the key of the server is no part of it."""
    settings = json.dumps(chat.settings, sort_keys=True)
    return key("compun answers", chat.url, chat.model, settings, count, kind.many, kind.instruction(noun, count))


def kept_answers(cache: Cache, chat: Chat, nouns: Sequence[str], kind: Kind, count: int) -> dict[str, Answer]:
    """The answers that are there; one that is no longer as it must be counts as none."""
    keys = {noun: cache_key(chat, noun, kind, count) for noun in nouns}
    stored = cache.get(list(keys.values()))
    found = {}
    for noun, name in keys.items():
        if name not in stored:
            continue
        try:
            content = json.loads(stored[name])
            texts = check_texts(content["texts"], count)
            found[noun] = Answer(texts, str(content["model"]), int(content["tries"]))
        except (ValueError, LookupError, TypeError):
            log.debug("%s: %s: kept in another form: asked anew", cache.path, noun)
    return found


def ask_all(
    chat: Chat, cache: Cache, nouns: Sequence[str], kind: Kind, count: int, tries: int, at_once: int
) -> tuple[dict[str, Answer], dict[str, str]]:
    """The answers, and of nouns without a usable one the fault; each is put into ``cache`` as it comes.

    Raises UserError as soon as asking further is of no use; what is on its way by then is kept too.
    """
    answers: dict[str, Answer] = {}
    faults: dict[str, str] = {}
    fatal: list[UserError] = []

    def keep(future: Future[Answer], noun: str) -> None:
        try:
            answer = future.result()
        except (CancelledError, Stopped):
            return
        except BadAnswer as fault:
            faults[noun] = str(fault)
            log.warning("warning: %s: %s", noun, fault)
        except UserError as error:
            fatal.append(error)
            stop()
        else:
            content = {"texts": answer.texts, "model": answer.model, "tries": answer.tries}
            cache.put([(cache_key(chat, noun, kind, count), json.dumps(content).encode())])
            answers[noun] = answer

    def stop() -> None:
        chat.stop()
        for future in futures:
            future.cancel()

    with ThreadPoolExecutor(at_once) as pool, Progress(len(nouns), "answers") as progress:
        futures = {pool.submit(ask_noun, chat, noun, kind, count, tries): noun for noun in nouns}
        left = dict(futures)
        try:
            for future in as_completed(futures):
                keep(future, left.pop(future))
                progress.add()
        except KeyboardInterrupt:
            log.warning("interrupted: what is on its way is waited for and kept")
            stop()
            for future in as_completed(left):
                keep(future, left[future])
            raise
        except BaseException:
            stop()
            raise
    if fatal:
        raise UserError(
            f"{fatal[0]}; {len(answers)} of {len(nouns)} answers came and are kept: run again to resume, "
            f"or give the {kind.many} by --file"
        )
    return answers, faults


def some(names: Iterable[str]) -> str:
    """The first of ``names``, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def cost(nouns: Sequence[str], kind: Kind, count: int, tries: int) -> str:
    """What asking for ``nouns`` takes: requests and, roughly, tokens."""
    sent = sum(len(kind.instruction(noun, count)) for noun in nouns) / CHARACTERS_A_TOKEN / 1000
    received = len(nouns) * count * TOKENS_A_TEXT / 1000
    return (
        f"{len(nouns)} requests (at most {len(nouns) * tries}, where answers are no use), about {sent:.0f} thousand "
        f"tokens sent and {received:.0f} thousand received"
    )


def summarize(texts: dict[str, list[str]], kind: Kind, given: Given, answers: dict[str, Answer]) -> dict[str, Any]:
    """Where the texts come from, and those that are not quite what was asked for, which are used all the same."""
    long = {noun: n for noun, own in texts.items() if (n := sum(len(text.split()) > kind.words for text in own))}
    summary = {
        "nouns": len(texts),
        kind.many: sum(map(len, texts.values())),
        "from_file": len(given.texts),
        "from_model": len(answers),
        "asked_again": {noun: answer.tries for noun, answer in answers.items() if answer.tries > 1},
        "answered_by": dict(sorted(Counter(answer.model for answer in answers.values()).items())),
        "not_among_the_nouns": given.unused,
        "repeated_left_out": given.repeated,
        f"beyond_{kind.most}_left_out": given.beyond,
        f"longer_than_{kind.words}_words": long,
    }
    if kind.many == "captions":
        without = {noun: n for noun, own in texts.items() if (n := sum(not mentions(text, noun) for text in own))}
        summary["without_the_noun"] = without
    return summary


def obtain(
    nouns: Sequence[str],
    kind: Kind,
    count: int,
    given: Given,
    chat: Chat | None,
    cache_folder: Path,
    tries: int = 3,
    at_once: int = 4,
    dry: bool = False,
    file: Path | None = None,
) -> dict[str, Answer] | None:
    """The answers for the nouns that ``given`` lacks, from the cache or the model; None where ``dry``, nothing asked.

    Raises UserError where some must be asked and there is no model, and where the model's answers are of no use.
    """
    lacking = [noun for noun in nouns if noun not in given.texts]
    if not lacking:
        log.info("%s of %d nouns: all from %s", kind.many, len(nouns), file)
        return None if dry else {}
    if chat is None:
        raise UserError(
            f"{f'{file}: ' if file else ''}no {kind.many} of {len(lacking)} of {len(nouns)} nouns ({some(lacking)}): "
            f'give them by --file, as {{"{lacking[0]}": ["…", "…"]}}, or name a language model by --address and --model'
        )
    with Cache(cache_folder / "compun" / "answers.sqlite") as cache:
        answers = kept_answers(cache, chat, lacking, kind, count)
        asked = [noun for noun in lacking if noun not in answers]
        from_file = f"{len(given.texts)} from {file}, " if file else ""
        known = f"{from_file}{len(answers)} answered before"
        price = f": {cost(asked, kind, count, tries)}" if asked else ""
        log.info(
            "%s of %d nouns: %s, %d to ask of %s at %s%s",
            *(kind.many, len(nouns), known, len(asked), chat.model, chat.address, price),
        )
        if dry:
            return None
        new, faults = ask_all(chat, cache, asked, kind, count, tries, at_once) if asked else ({}, {})
    if faults:
        listed = some(f"{noun!r}: {fault}" for noun, fault in faults.items())
        raise UserError(
            f"{chat.model}: no usable {kind.many} of {len(faults)} of {len(nouns)} nouns, asked {tries} times each "
            f"({listed}): run again to ask for these alone, or give them by --file; all others are kept"
        )
    return answers | new


def main(options: argparse.Namespace) -> None:
    kind = KINDS[options.kind]
    count = options.count
    if not 1 <= count <= kind.most:
        raise UserError(f"--count {count}: {kind.many} of a noun are 1 to {kind.most}")
    nouns, incomplete = read_nouns(options.compounds)
    if incomplete:
        log.info("%s: %d compounds lack an image: nothing is asked for them", options.compounds, incomplete)
    given = read_given(options.file, nouns, kind, count) if options.file else Given()
    chat = None
    if options.address:
        if not options.model:
            raise UserError("--address goes with --model, the model's name as the server has it")
        sent = {"temperature": options.temperature, "top_p": options.top_p}
        chat = Chat(
            options.address,
            options.model,
            options.key,
            {name: value for name, value in sent.items() if value is not None},
            options.timeout,
            options.per_minute,
        )
    answers = obtain(
        nouns, kind, count, given, chat, options.cache, options.tries, options.at_once, options.dry_run, options.file
    )
    if answers is None:
        return
    texts = {noun: given.texts[noun] if noun in given.texts else answers[noun].texts for noun in nouns}
    summary = summarize(texts, kind, given, answers)
    asked = {"model": chat.model, **chat.settings, "instruction": kind.instruction("{noun}", count)} if chat else None
    summary["asked"] = asked if answers else None
    for name in ("not_among_the_nouns", f"longer_than_{kind.words}_words", "without_the_noun"):
        if summary.get(name):
            log.warning("warning: %s: %d nouns (%s)", name.replace("_", " "), len(summary[name]), some(summary[name]))
    write_json(texts, options.output)
    write_json(summary, options.summary)


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if (value := int(text)) < least:
            raise argparse.ArgumentTypeError(f"at least {least}")
        return value

    return number


def _positive(text: str) -> float:
    if not 0 < (value := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError("more than 0")
    return value


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--kind", choices=sorted(KINDS), default="captions", help="(default: %(default)s)")
    result.add_argument(
        "--compounds", type=Path, required=True, help="compounds.parquet, or a list of nouns (.txt, .csv)"
    )
    result.add_argument("--count", type=int, default=5, help="of a noun (default: %(default)s, as published)")
    result.add_argument("--file", type=Path, help="what there is already (see above)")
    result.add_argument("--address", help="of the language model's server, as https://api.openai.com/v1")
    result.add_argument("--model", help="its name there")
    result.add_argument(
        "--key", default="OPENAI_API_KEY", metavar="VARIABLE", help="environment variable (default: %(default)s)"
    )
    # Without a value: for models that take none.
    result.add_argument("--temperature", type=float, nargs="?", default=0.1, help="default: %(default)s; empty: unsent")
    result.add_argument("--top-p", type=float, nargs="?", default=1.0, help="default: %(default)s; empty: unsent")
    result.add_argument("--tries", type=_at_least(1), default=3, help="answers to a question (default: %(default)s)")
    result.add_argument("--at-once", type=_at_least(1), default=4, help="requests at a time (default: %(default)s)")
    result.add_argument("--per-minute", type=_positive, help="requests, at most: the account's rate limit")
    result.add_argument("--timeout", type=_positive, default=120.0, help="seconds of an answer (default: 120)")
    result.add_argument("--dry-run", action="store_true", help="say how many requests it takes, and end")
    result.add_argument("--cache", type=Path, default=Path(".cache"), help="folder of what is kept between runs")
    result.add_argument("--output", type=Path, required=True, help="captions.json: noun to its texts")
    result.add_argument("--summary", type=Path, required=True, help="where they come from, and what is odd (JSON)")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
