"""Collect example captions or descriptions of nouns: from a file, or by asking a language model.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), section 4; descriptions
after Menon and Vondrick, "Visual Classification via Description from Large Language Models" (ICLR 2023).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from workflow_scripts.compun.config import Asking
from workflow_scripts.compun.steps import AskCaptions
from workflow_scripts.compun.texts import (
    KINDS,
    BadAnswer,
    Given,
    Kind,
    mentions,
    read_answer,
    read_given,
    read_nouns,
)  # fmt: skip
from workflow_scripts.core import cli
from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_json
from workflow_scripts.core.progress import Progress

if TYPE_CHECKING:
    from workflow_scripts.compun.chat import Chat

MAX_NAMES = 5  # in a line of the log or an error
CHARACTERS_PER_TOKEN, TOKENS_PER_TEXT = 4, 15  # roughly, of English, to estimate costs


@dataclass(frozen=True)
class Answer:
    """The texts of a noun, the model's name as the server gives it, and how often the model was asked."""

    texts: list[str]
    model: str
    tries: int


def ask_noun(chat: Chat, noun: str, kind: Kind, count: int, tries: int) -> Answer:
    """Ask for the texts of a noun, at most ``tries`` times, stating what was wrong; BadAnswer states the last fault."""
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
    """Return a key over everything that an answer depends on; the API key is not part of it."""
    settings = json.dumps(chat.settings, sort_keys=True)
    return key("compun answers", chat.url, chat.model, settings, count, kind.many, kind.instruction(noun, count))


def cached_answers(cache: Cache, chat: Chat, nouns: Sequence[str], kind: Kind, count: int) -> dict[str, Answer]:
    keys = {noun: cache_key(chat, noun, kind, count) for noun in nouns}
    stored = cache.get(list(keys.values()))
    return {noun: Answer(**json.loads(stored[name])) for noun, name in keys.items() if name in stored}


def ask_all(
    chat: Chat, cache: Cache, nouns: Sequence[str], kind: Kind, ask: Asking
) -> tuple[dict[str, Answer], dict[str, str]]:
    """Return the answers, and the faults of nouns without a valid one; cache each answer as it arrives."""
    from workflow_scripts.compun.chat import Stopped

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
            cache.put([(cache_key(chat, noun, kind, ask.count), json.dumps(asdict(answer)).encode())])
            answers[noun] = answer

    def stop() -> None:
        chat.stop()
        for future in futures:
            future.cancel()

    with ThreadPoolExecutor(ask.at_once) as pool, Progress(len(nouns), "answers") as progress:
        futures = {pool.submit(ask_noun, chat, noun, kind, ask.count, ask.tries): noun for noun in nouns}
        pending = dict(futures)
        try:
            for future in as_completed(futures):
                keep(future, pending.pop(future))
                progress.add()
        except KeyboardInterrupt:
            log.warning("interrupted; waiting for the answers that are on their way")
            stop()
            for future in as_completed(pending):
                keep(future, pending[future])
            raise
        except BaseException:
            stop()
            raise
    if fatal:
        raise UserError(
            f"{fatal[0]}; {len(answers)} of {len(nouns)} answers arrived and are cached; run again to resume, "
            f"or give the {kind.many} by --file"
        )
    return answers, faults


def first_names(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def cost(nouns: Sequence[str], kind: Kind, count: int, tries: int) -> str:
    """Return how many requests and, roughly, tokens asking for ``nouns`` takes."""
    sent = sum(len(kind.instruction(noun, count)) for noun in nouns) / CHARACTERS_PER_TOKEN / 1000
    received = len(nouns) * count * TOKENS_PER_TEXT / 1000
    return (
        f"{len(nouns)} requests (at most {len(nouns) * tries}, if answers are invalid), about {sent:.0f} thousand "
        f"tokens sent and {received:.0f} thousand received"
    )


def summarize(texts: dict[str, list[str]], kind: Kind, given: Given, answers: dict[str, Answer]) -> dict[str, Any]:
    """Return where the texts come from, and which differ from what was asked for; those are used, too."""
    long = {noun: n for noun, lines in texts.items() if (n := sum(len(line.split()) > kind.words for line in lines))}
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
        without = {noun: n for noun, lines in texts.items() if (n := sum(not mentions(line, noun) for line in lines))}
        summary["without_the_noun"] = without
    return summary


def ask_model(nouns: Sequence[str], known: str, kind: Kind, step: AskCaptions) -> dict[str, Answer] | None:
    """Return the model's answers for ``nouns``, cached or asked now; None in a dry run. ``known`` is logged."""
    from workflow_scripts.compun.chat import Chat  # takes a second to import

    ask, chat = step.ask, Chat(step.ask)
    with Cache(step.cache / "compun" / "answers.sqlite") as cache:
        answers = cached_answers(cache, chat, nouns, kind, ask.count)
        missing = [noun for noun in nouns if noun not in answers]
        price = f": {cost(missing, kind, ask.count, ask.tries)}" if missing else ""
        values = (known, len(answers), len(missing), chat.model, chat.address, price)
        log.info("%s%d answered before, %d to ask of %s at %s%s", *values)
        if step.dry_run:
            return None
        new, faults = ask_all(chat, cache, missing, kind, ask) if missing else ({}, {})
    if faults:
        listed = first_names(f"{noun!r}: {fault}" for noun, fault in faults.items())
        raise UserError(
            f"{chat.model}: no valid {kind.many} of {len(faults)} of {len(nouns)} nouns, asked {ask.tries} times each "
            f"({listed}); run again to ask for these alone, or give them by --file; all others are cached"
        )
    return answers | new


def main(step: AskCaptions) -> None:
    kind, ask = KINDS[step.kind], step.ask
    if ask.count > kind.most:
        raise UserError(f"--ask.count {ask.count}: expected at most {kind.most} {kind.many} of a noun")
    nouns, incomplete = read_nouns(step.compounds)
    if incomplete:
        log.info("%s: %d compounds lack an image and are skipped", step.compounds, incomplete)
    given = read_given(step.file, nouns, kind, ask.count) if step.file else Given()
    lacking = [noun for noun in nouns if noun not in given.texts]
    known = f"{kind.many} of {len(nouns)} nouns: " + (f"{len(given.texts)} from {step.file}, " if step.file else "")
    answers: dict[str, Answer] | None = {}
    if lacking and not ask.address:
        raise UserError(
            f"{f'{step.file}: ' if step.file else ''}no {kind.many} of {len(lacking)} of {len(nouns)} nouns"
            f' ({first_names(lacking)}); give them by --file, in the form {{"{lacking[0]}": ["…", "…"]}}, or name a'
            " language model by --ask.address and --ask.model"
        )
    if lacking:
        answers = ask_model(lacking, known, kind, step)
    else:
        log.info("%snone to ask for", known)
    if answers is None or step.dry_run:
        return
    texts = {noun: given.texts[noun] if noun in given.texts else answers[noun].texts for noun in nouns}
    summary = summarize(texts, kind, given, answers)
    asked = {"model": ask.model, **ask.sampling, "instruction": kind.instruction("{noun}", ask.count)}
    summary["asked"] = asked if answers else None
    for name in ("not_among_the_nouns", f"longer_than_{kind.words}_words", "without_the_noun"):
        if summary.get(name):
            unusual = summary[name]
            log.warning("warning: %s: %d nouns (%s)", name.replace("_", " "), len(unusual), first_names(unusual))
    write_json(texts, step.texts)
    write_json(summary, step.summary)


if __name__ == "__main__":
    cli.run(main)
