"""Score the drawn scenes of all generators by the oracle, which knows what was drawn."""

from compclip.core.tables import ORACLE
from compclip.io import read_frame
from compclip.score.entries import EntrySet
from compclip.score.score_oracle import Oracle, score_oracle
from workflow_scripts.job import Job, run_script
from workflow_scripts.score.scores import JudgedSets, read_inputs, score_generators


def main(job: Job) -> None:
    inputs = read_inputs(job)
    swapped = inputs.tables["swapped"]
    # The oracle looks up judged images alone.
    judged = inputs.tables["judged"]["image_id"]
    facts = read_frame(job.input.facts)
    facts = facts[facts["image_id"].isin(judged)]
    scenes = read_frame(job.input.scenes)
    oracle = Oracle(scenes, inputs.images, facts, swapped, inputs.variants)
    drawn_files = {file.parent.name: file for file in job.input.drawn}

    def score(name: str, sets: list[EntrySet]) -> JudgedSets:
        # Generators that show images of the data set have drawn nothing.
        drawn = read_frame(drawn_files[name]) if name in drawn_files else None
        scored = score_oracle(sets, inputs.rules, oracle, drawn)
        return scored, {"judge": ORACLE, "judge_hash": None}

    score_generators(job, inputs, job.output.scores, score)


if __name__ == "__main__":
    run_script(main)
