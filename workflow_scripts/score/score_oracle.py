"""Score the drawn scenes of all generators by the oracle, which knows what was drawn."""

from compclip.core.tables import ORACLE
from compclip.io import read_frame
from compclip.score.entries import EntrySet
from compclip.score.score_oracle import Oracle, score_oracle
from workflow_scripts.job import Job, run_script
from workflow_scripts.score.scores import JudgedSets, read_inputs, score_generators


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

    def score(name: str, sets: list[EntrySet]) -> JudgedSets:
        drawn = next(
            (read_frame(file) for file in job.input.drawn if file.parent.name == name), None
        )
        return score_oracle(sets, inputs.rules, oracle, drawn), {
            "judge": ORACLE,
            "judge_hash": None,
        }

    score_generators(job, inputs, job.output.scores, score)


if __name__ == "__main__":
    run_script(main)
