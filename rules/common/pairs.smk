# pairs: the lexicons and pairs of a composition.
from compclip.text.lexicon import SHARED, lexicons_of
from workflow_scripts.layout import Layout


# The folder of the pairs of a composition with its own lexicons; "" for those that share the data
# set's.
wildcard_constraints:
    own=f"(({'|'.join(name for name in CONFIG.compositions if name not in SHARED)})/)?",


def read_lexicons(wildcards):
    """The lexicons that are used to read captions: for one composition, or for those that share
    the pairs.
    """
    place = Path(workflow.basedir, "lexicons", "adjectives")
    name = wildcards.get("own", wildcards.get("composition"))
    names = lexicons_of(name.rstrip("/"), place) if name else SHARED
    return [f"lexicons/adjectives/{name}.yaml" for name in names]


def pairs_table(wildcards):
    """The pairs of a composition."""
    return str(Layout(Path(RESULTS), DATASET, wildcards.composition).read / "pairs.parquet")


def noun_forms(wildcards):
    """The summary of the pairs of a composition, with the forms of nouns."""
    return pairs_table(wildcards).removesuffix("parquet") + "json"


# Params of the rules that parse.
PARSING = {"model": literal(CONFIG.pairs.model), "cache": undecisive(CONFIG.cache)}
# The lexicon of a composition.
ADJECTIVE_LEXICON = "lexicons/adjectives/{composition}.yaml"
# The noun lexicon, or none if any noun counts; the compounds that count as one noun.
NOUN_LEXICON = f"lexicons/nouns/{CONFIG.pairs.nouns}.yaml" if CONFIG.pairs.nouns else []
COMPOUND_LEXICON = "lexicons/compounds/common.yaml"
