"""Make hard negatives of the captions that the judges learn from."""

from dataclasses import replace

from compclip.core.heldout import pair_names
from compclip.core.log import log
from compclip.core.tables import CAPTIONS, IMAGES, NEGATIVES, PAIRS, RANKING, SPLIT
from compclip.io import read_table, write_table
from compclip.judge.make_negatives import make_negatives
from compclip.split.judged import judge_images
from compclip.split.swap_adjectives import nouns_of
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    read, given = job.input, job.params
    captions, pairs = read_table(read.captions, CAPTIONS), read_table(read.pairs, PAIRS)
    nouns = nouns_of(captions, pairs).union(load_lexicon(read.nouns).forms if read.nouns else ())
    splits, images = [read_table(file, SPLIT) for file in read.splits], read_table(read.images, IMAGES)
    learned = judge_images(splits, images, given.train_on, given.halves)
    captions, pairs = (table[table["image_id"].isin(learned)] for table in (captions, pairs))
    ranked = pair_names(read_table(read.ranking, RANKING)).tolist()
    adjectives = load_lexicon(read.adjectives)
    if given.one_value:
        adjectives = replace(adjectives, groups=())
    negatives = make_negatives(captions, pairs, ranked, adjectives, nouns, given.hard_negatives, given.seed)
    write_table(negatives, job.output.negatives, NEGATIVES)
    log.info("%s: %d hard negatives of %d captions", job.where, len(negatives), len(captions))
    if negatives.empty:
        log.warning(
            "warning: %s: judge.hard_negatives has no effect: no noun has two ranked adjectives in captions that the"
            " judge learns from; lower pairs.selection.min_count", job.where,
        )  # fmt: skip


if __name__ == "__main__":
    run(main)
