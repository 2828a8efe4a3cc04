"""Give all forms of a noun one name, by the words that occur in a table of captions.

A lemmatizer sees one word at a time: it cannot tell whether `vases` are of a `vase` or of a `vas`.
The captions can: of the possible singulars of a form, the one that occurs as a word is right. The
irregular plurals, the endings and the known nouns are WordNet's, as the pipeline's lemmatizer has
them; ``lexicons/grammar.yaml`` adds a few.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache

import pandas as pd

from compclip.core.normal import normalize
from compclip.core.tables import CAPTION_KEY
from compclip.pairs.counts import surfaces
from compclip.pairs.words import Role, Vocabulary
from compclip.text.grammar import WORDS

WORD = re.compile(r"[^\W_]+")
# Endings of plurals that the lemmatizer lacks, with those of their singulars: `chilies`,
# `burritoes`, `fezzes`.
MORE_RULES = (("ies", "i"), ("oes", "o"), ("zzes", "z"))
# Endings of singulars, too; words in -ss are singulars.
SINGULARS_IN_S = ("us", "is")


def caption_words(texts: Iterable[str]) -> set[str]:
    """Return the lower-case words of texts; hyphens separate words."""
    return {word for text in texts for word in WORD.findall(normalize(text).text.lower())}


class NounForms:
    """The noun of each form in a table of pairs.

    Args:
        vocabulary: the one that the pairs were found with.
        words: all words of the captions (``caption_words``); with a noun lexicon, None: only an
            unlisted form of a listed noun gets another noun.
    """

    def __init__(self, vocabulary: Vocabulary, words: Collection[str] | None) -> None:
        from spacy.lookups import Lookups

        self.listed = vocabulary.forms[Role.NOUN]
        self.has_lexicon = words is None
        self.words = self.listed if words is None else words
        excluded = WORDS.function_words.union(
            WORDS.never_singular, vocabulary.forms[Role.ADJECTIVE]
        )
        self.excluded = excluded - WORDS.singulars_like_others
        lookups = getattr(vocabulary.lemmatizer, "lookups", Lookups())
        tables = {
            name: lookups.get_table(f"lemma_{name}", {}).get("noun", ())
            for name in ("exc", "rules", "index")
        }
        self.irregular = dict(tables["exc"])
        self.rules = [*tables["rules"], *MORE_RULES]
        self.known = frozenset(tables["index"])
        self.noun = cache(self._noun)

    def unite(self, captions: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
        """Return pairs of these captions (``tables.PAIRS``, ``tables.CAPTIONS``), the same noun for
        all its forms.
        """
        forms = surfaces(pairs.merge(captions[[*CAPTION_KEY, "text"]], on=CAPTION_KEY), "noun")
        nouns = [*map(self.noun, forms, pairs["noun"])]
        return pairs.assign(noun=pd.array(nouns, pairs["noun"].dtype))

    def _noun(self, form: str, lemma: str) -> str:
        """Return the noun of a lower-case form, whose lemma or word in a lexicon is ``lemma``."""
        if lemma in self.listed.values():
            return lemma
        # Only the last word of `yo-yos` is inflected.
        first, hyphen, last = form.rpartition("-")
        noun = first + hyphen + self._singular(last)
        return self.listed.get(noun, lemma if self.has_lexicon else noun)

    def _singular(self, form: str) -> str:
        """Return the likeliest singular of a word: one that occurs, else one that is known, else
        the first.
        """
        irregular = [*WORDS.irregular_plurals.get(form, ()), *self.irregular.get(form, ())]
        rules = () if form.endswith("ss") else self.rules
        regular = [
            form.removesuffix(plural) + end for plural, end in rules if form.endswith(plural)
        ]
        singulars = [
            word for word in irregular + regular if len(word) > 1 and word not in self.excluded
        ]
        known = [
            singular for singular in singulars if singular in self.known or singular in irregular
        ]
        # `lens` and `news` are words, so an unknown `len` and the adjective `new` are not their
        # singulars.
        possible = known if irregular or form in self.known else known + singulars
        occurring = [singular for singular in possible if singular in self.words]
        # Nor is the known word `ga` that of `gas`, unless it occurs; but `ski` is that of the
        # unknown `skis`.
        is_singular = form in WORDS.singulars_in_s or form.endswith(SINGULARS_IN_S) and not known
        # `stamina` and `cola` are words, too; `eyes` and `teeth` are known in a sense that captions
        # do not have.
        is_plural = (
            f"{form[:-1]}s" == form and form[:-1] in known or form in WORDS.irregular_plurals
        )
        if form in self.known and not is_plural:
            is_singular = True
        # Without evidence, only -s makes an unknown plural: a misspelt `tamen` is not of a `taman`.
        guesses = known or (singulars if form.endswith("s") else [])
        likeliest = occurring or ([form] if is_singular else guesses)
        singular = next(iter(likeliest), form)
        # It may be a plural, too: the noun of `taxes` is that of `taxis` if no `tax` occurs.
        return self._singular(singular) if singular != form and singular in self.words else singular
