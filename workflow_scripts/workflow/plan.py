"""What a run makes, and what its rules are given.

``rules/*.smk`` declare each step by names of ``RunPlan``, which is checked and tested without
Snakemake.
"""

from workflow_scripts.workflow.config import Config
from workflow_scripts.workflow.plan_base import BasePlan
from workflow_scripts.workflow.plan_options import CompunPlan, HumanPlan, SpecsPlan
from workflow_scripts.workflow.plan_stages import (
    GeneratePlan,
    JudgePlan,
    PairsPlan,
    ReportPlan,
    ScorePlan,
    SourcePlan,
    SplitPlan,
)

# What a scored run makes in the results folder.
SCORE_FILES = (
    "scores.parquet",
    "scores.csv",
    "metrics.json",
    "comparisons.csv",
    "pairs.csv",
    "entries.html",
    "table.csv",
    "table.md",
    "table.tex",
)
# What a release contains of each composition.
RELEASED_FILES = (
    "prompts.parquet",
    "prompts.jsonl",
    "variants.parquet",
    "variants.json",
    "swapped.parquet",
)
RELEASED_SPLIT = (
    "splits.parquet",
    "ranking.parquet",
    "heldout.json",
    "divergence.parquet",
    "audit.json",
)


class RunPlan(BasePlan):
    """The judges, generators, shards and targets of a run, with a plan for each stage.

    ``specs``, ``compun`` and ``human`` are None if the config has no such section.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.source = SourcePlan(self)
        self.pairs = PairsPlan(self)
        self.split = SplitPlan(self)
        self.judge = JudgePlan(self)
        self.generate = GeneratePlan(self)
        self.score = ScorePlan(self, self.source, self.judge, self.generate)
        self.report = ReportPlan(self, self.score)
        self.specs = config.specs and SpecsPlan(config.specs, self.results, self.dataset)
        self.compun = config.compun and CompunPlan(config.compun, self.results, self.dataset)
        self.human = config.human and HumanPlan(config.human, list(self.generators))

    @property
    def released(self) -> list[str]:
        """The artifacts of the compositions that a release contains."""
        return self.of_compositions(*RELEASED_FILES) + self.of_compositions(*RELEASED_SPLIT)

    @property
    def page_inputs(self) -> list[str]:
        """The inputs of the page, except tables and figures: examples, counts and the stages'
        sections.
        """
        files = [f"{self.data}/dataset.json", *self.of_compositions("prompts.json")]
        files += self.pairs.tables
        files += self.split.page_files
        files += self.of_compositions("divergence.parquet", "divergence.json")
        if self.specs:
            files += self.specs.page_files
        if self.compun:
            files += self.compun.page_files
        if self.config.scored:
            files += [*self.report.examples, *self.score.fids]
            files += [*self.score.bias_checks, *self.judge.folders]
            files += self.score.oracle_scores
            files += self.report.compared_judges
        return files

    @property
    def outputs(self) -> list[str]:
        """The targets of a run: the table and the page or, for captions alone, the splits and the
        page.
        """
        files = self.of_compositions(
            "splits.csv", "swapped.parquet", "prompts.jsonl", "widths.json", "audit.json", "export"
        )
        files += self.of_compositions("divergence.parquet")
        files.append(f"{self.results}/report.html")
        if self.specs:
            files += self.specs.outputs
        if self.compun:
            files += self.compun.outputs
        if self.config.scored:
            files += [f"{self.results}/{name}" for name in SCORE_FILES]
            files += [*self.score.bias_checks, *self.score.fids]
            files += self.report.compared_judges
            if self.human:
                files += self.of_compositions(*self.human.outputs)
        return files
