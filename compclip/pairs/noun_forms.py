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

from compclip.core.reading.normal import normalize
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
    words: set[str] = set()
    for text in texts:
        words.update(WORD.findall(normalize(text).text.lower()))
    return words


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
        adjectives = vocabulary.forms[Role.ADJECTIVE]
        excluded = WORDS.function_words.union(WORDS.never_singular, adjectives)
        self.excluded = excluded - WORDS.singulars_like_others
        lookups = getattr(vocabulary.lemmatizer, "lookups", Lookups())
        self.irregular = dict(lookups.get_table("lemma_exc", {}).get("noun", ()))
        rules = lookups.get_table("lemma_rules", {}).get("noun", ())
        self.rules = [*rules, *MORE_RULES]
        self.dictionary = frozenset(lookups.get_table("lemma_index", {}).get("noun", ()))
        self.noun = cache(self._noun)

    def unite(self, captions: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
        """Return pairs of these captions (``tables.PAIRS``, ``tables.CAPTIONS``), the same noun for
        all its forms.
        """
        with_text = pairs.merge(captions[[*CAPTION_KEY, "text"]], on=CAPTION_KEY)
        nouns = list(map(self.noun, surfaces(with_text, "noun"), pairs["noun"]))
        return pairs.assign(noun=pd.array(nouns, pairs["noun"].dtype))

    def _noun(self, form: str, lemma: str) -> str:
        """Return the noun of a lower-case form, whose lemma or word in a lexicon is ``lemma``."""
        if lemma in self.listed.values():
            return lemma
        # Only the last word of `yo-yos` is inflected.
        first, hyphen, last = form.rpartition("-")
        noun = first + hyphen + self._singular(last)
        unlisted = lemma if self.has_lexicon else noun
        return self.listed.get(noun, unlisted)

    def _singulars(self, form: str) -> list[str]:
        """Return the possible singulars of a word, by its endings and the irregular plurals."""
        singulars = self._irregular_singulars(form)
        if not form.endswith("ss"):
            for ending, singular_ending in self.rules:
                if form.endswith(ending):
                    stem = form.removesuffix(ending)
                    singulars.append(stem + singular_ending)
        return [word for word in singulars if len(word) > 1 and word not in self.excluded]

    def _irregular_singulars(self, form: str) -> list[str]:
        return [*WORDS.irregular_plurals.get(form, ()), *self.irregular.get(form, ())]

    def _is_singular(self, form: str, has_listed_singular: bool) -> bool:
        """Return whether a form is a singular, if its captions do not show otherwise."""
        # `stamina` and `cola` are words, too; `eyes` and `teeth` are known in a sense that captions
        # do not have.
        is_in_s = form.endswith("s")
        is_plural = is_in_s and form[:-1] in self.dictionary or form in WORDS.irregular_plurals
        if form in self.dictionary and not is_plural:
            return True
        if form in WORDS.singulars_in_s:
            return True
        # The known word `ga` is not the singular of `gas`, unless it occurs; but `ski` is that of
        # the unknown `skis`.
        return form.endswith(SINGULARS_IN_S) and not has_listed_singular

    def _singular(self, form: str) -> str:
        """Return the likeliest singular of a word: one that occurs, else one that is known, else
        the first.
        """
        irregular = self._irregular_singulars(form)
        singulars = self._singulars(form)
        listed = [word for word in singulars if word in self.dictionary or word in irregular]
        # `lens` and `news` are words, so an unknown `len` and the adjective `new` are not their
        # singulars.
        possible = listed
        if not irregular and form not in self.dictionary:
            possible = listed + singulars
        occurring = [word for word in possible if word in self.words]
        if occurring:
            likeliest = occurring
        elif self._is_singular(form, bool(listed)):
            likeliest = [form]
        elif form.endswith("s"):
            likeliest = listed or singulars
        else:
            # Without evidence, only -s makes an unknown plural: a misspelt `tamen` is not of a
            # `taman`.
            likeliest = listed
        if not likeliest or likeliest[0] == form:
            return form
        singular = likeliest[0]
        # It may be a plural, too: the noun of `taxes` is that of `taxis` if no `tax` occurs.
        return self._singular(singular) if singular in self.words else singular
