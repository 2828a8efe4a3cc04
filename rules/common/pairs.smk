# pairs: the lexicons.


def adjective_lexicons(wildcards):
    """The lexicon of one composition, or of all where the rule knows none."""
    names = [wildcards.composition] if hasattr(wildcards, "composition") else CONFIG.compositions
    return of_project(*(f"lexicons/adjectives/{name}.yaml" for name in names))


def all_adjective_lexicons(wildcards):
    """The lexicons with which all captions were parsed."""
    return of_project(*(f"lexicons/adjectives/{name}.yaml" for name in CONFIG.compositions))


def noun_lexicon(wildcards):
    """The noun lexicon, or nothing where any noun goes."""
    return of_project(f"lexicons/nouns/{CONFIG.pairs.nouns}.yaml") if CONFIG.pairs.nouns else []
