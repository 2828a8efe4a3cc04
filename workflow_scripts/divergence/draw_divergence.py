"""Draw how far the test splits are from train: their atoms and compounds, and the division by divergence."""

from compclip.core.tables import DIVERGENCE
from compclip.divergence.draw_divergence import draw_divergence, draw_path
from compclip.io import read_json, read_table
from compclip.plot.drawing import save, style
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    where, seed = f"{job.params.dataset}, {job.wildcards.composition}", job.params.seed
    divergences = read_table(job.input.divergence, DIVERGENCE)
    drawn = draw_divergence(divergences, read_json(job.input.summary)["distributions"], seed)
    with style():
        # The last file is of a division by divergence alone.
        for file, (figure, title, description) in zip(job.output.figures, drawn, strict=False):
            save(figure, file, f"{title} ({where})", description)
        if job.input.division:
            figure = draw_path(read_json(job.input.division), seed)
            save(figure, job.output.figures[-1], f"Divergence while the division grew ({where})")


if __name__ == "__main__":
    run(main)
