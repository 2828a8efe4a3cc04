"""Ask a language model for example captions or descriptions of compounds, once, into a table that classify reads.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), section 4; descriptions
after Menon and Vondrick, "Visual Classification via Description from Large Language Models" (ICLR 2023).
"""

import json
import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from compclip.compun.load_compounds import name_key, read_list
from compclip.compun.prompts import read_texts
from compclip.core.cli import Command
from compclip.core.errors import UserError, one_line, require
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.section import SECRET
from compclip.io import read_json, write_json

SAMPLING = {"temperature": 0.1, "top_p": 1}  # as published
TRIES, REQUEST_RETRIES = 3, 5  # until an answer is valid, and of a request that fails
SECRET_LENGTH = 8
# The paper's instruction in other words.
QUESTIONS = {
    "captions": "Write {count} different captions, each of a photo in which {noun} is seen. A caption is a single "
    "line of at most 10 words and names {noun}. Let the scenes be as unlike as possible: in each, {noun} is "
    "somewhere else, described by other adjectives, and something else is done with it, by another verb.",
    "descriptions": "By what does one tell {noun} in a photo? Name {count} different features that can be seen: "
    "shapes, parts, colors, materials, surroundings. A feature is a phrase of at most 10 words, without the noun.",
}
FORM = 'Answer with JSON alone: {count} texts in a list, ["…", "…"].'


class AskCaptions(Command):
    """Ask a language model for example captions or descriptions of compounds, once.

    The texts are kept in a JSON file from compounds to their texts, which is saved after each answer: compounds that
    are in it are not asked for again, so that a run that was killed resumes. The server has OpenAI's interface; its API
    key is read from an environment variable and never written or shown.
    """

    compounds: Path = Field(description="list of compounds, as for load_compounds")
    kind: Literal["captions", "descriptions"] = Field("captions", description="which texts")
    count: int = Field(5, ge=1, le=20, description="texts of each compound")
    base_url: str = Field("https://api.openai.com/v1", description="address of a server with OpenAI's interface")
    model: str = Field(min_length=1, description="the model's name on the server")
    key: str = Field("OPENAI_API_KEY", description="name of the environment variable that holds the API key")
    texts: Path = Field(description="JSON file of texts, made or continued")

    @field_validator("key", "base_url", mode="before")
    @classmethod
    def _holds_no_key(cls, value: Any, info: Any) -> Any:
        pattern, form = {
            "key": (r"[A-Z][A-Z0-9_]*", "the name of an environment variable"),
            "base_url": (r"https?://[^@?#\s]+", "an address such as http://127.0.0.1:8080/v1"),
        }[info.field_name]
        if not re.fullmatch(pattern, str(value)):
            raise PydanticCustomError(SECRET, f"expected {form}; give the key by the environment only")
        return value


class BadAnswer(Exception):
    """The answer is of no use; another answer may be."""


def read_answer(answer: str, count: int) -> list[str]:
    """Return the ``count`` texts of the list in an answer; prose and thoughts around it are skipped."""
    braced = re.search(r"\[.*\]", answer.rpartition("</think>")[2], flags=re.DOTALL)
    try:
        texts = json.loads(braced[0] if braced else "")
        lines = [" ".join(text.split()) for text in texts]
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise BadAnswer(f"expected a list of texts, got {answer[:60]!r}") from None
    distinct = {line.casefold() for line in lines if line.isprintable()} - {""}
    if len(distinct) < len(lines) or len(lines) < count:
        raise BadAnswer(f"{len(distinct)} different texts of {count}")
    return lines[:count]


def ask_texts(client: Any, command: AskCaptions, noun: str, secret: str | None) -> list[str]:
    """Return the texts of a noun, and raise UserError, both without the key, which servers may quote."""
    import openai

    def hidden(text: str) -> str:
        return text.replace(secret, "***") if secret else text

    question = f"{QUESTIONS[command.kind]} {FORM}".format(noun=f'"{noun}"', count=command.count)
    messages, fault = [{"role": "user", "content": question}], ""
    for _ in range(TRIES):
        try:
            reply = client.chat.completions.create(model=command.model, messages=messages, **SAMPLING)
            return [hidden(text) for text in read_answer(reply.choices[0].message.content, command.count)]
        except (BadAnswer, AttributeError, LookupError, TypeError) as error:
            fault = hidden(str(error))
        except openai.AuthenticationError:  # its message may hold a part of the key
            state = "rejects the key in" if secret else "asks for a key; export"
            raise UserError(f"{command.base_url}: the server {state} {command.key}; run again to resume") from None
        except openai.OpenAIError as error:
            reason = hidden(one_line(error))
            raise UserError(f"{command.base_url}: {reason}; texts so far are kept, run again to resume") from None
    raise UserError(f"{command.model}: {noun!r}: invalid answers ({fault}); run again, or add it to {command.texts}")


def main(command: AskCaptions) -> None:
    import openai

    nouns = read_list(command.compounds)["compound"].tolist()
    texts = read_json(command.texts) if command.texts.exists() else {}
    known = read_texts(command.texts) if texts else {}
    key_value = os.environ.get(command.key, "").strip() or "none"
    # Shorter values are placeholders for servers that need no key; they may appear in any text.
    secret = key_value if len(key_value) >= SECRET_LENGTH else None
    require(not secret or secret not in command.base_url, "--base-url", "it holds the key", "remove the key from it")
    client = openai.OpenAI(base_url=command.base_url, api_key=key_value, max_retries=REQUEST_RETRIES)
    missing = [noun for noun in nouns if name_key(noun) not in known]
    log.info("%s: %d of %d compounds to ask of %s", command.texts, len(missing), len(nouns), command.model)
    for noun in track(missing, len(missing), "answers"):
        texts[noun] = ask_texts(client, command, noun, secret)
        write_json(texts, command.texts)
