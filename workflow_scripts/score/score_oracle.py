"""Score the drawn scenes of all generators by the oracle, which knows what was drawn."""

from compclip.core.artifacts.parquet import read_frame
from compclip.core.tables import ORACLE
from compclip.score.score_oracle import Oracle, score_oracle
from workflow_scripts.job import Job, run_script
from workflow_scripts.score.generator_scores import (
    JudgedSets,
    read_generators,
    read_inputs,
    write_scores,
)


def main(job: Job) -> None:
    inputs = read_inputs(job)
    facts = read_frame(job.input.facts)
    facts = facts[facts["image_id"].isin(inputs.tables["judged"]["image_id"])]
    oracle = Oracle(
        read_frame(job.input.scenes),
        inputs.images,
        facts,
        inputs.tables["swapped"],
        inputs.variants,
    )
    # Generators that show real images have no scenes of their own.
    drawn_by_generator = {file.parent.name: file for file in job.input.drawn}
    generators = read_generators(job, inputs)
    for (name, sets), folder in zip(generators.items(), job.output.scores, strict=True):
        file = drawn_by_generator.get(name)
        drawn = read_frame(file) if file else None
        scores = score_oracle(sets, inputs.rules, oracle, drawn)
        judged = JudgedSets(scores, {"judge": ORACLE, "judge_hash": None})
        write_scores(job, inputs, name, judged, folder)


if __name__ == "__main__":
    run_script(main)
