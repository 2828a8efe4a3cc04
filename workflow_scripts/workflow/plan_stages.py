"""The plans of stages that every run has (``plan``)."""

from typing import Any, Literal

from compclip.core.identity.code import code_hash
from compclip.core.settings.section import COMPOSITION_FIELD
from compclip.dataset.source import SOURCES, load_source
from compclip.generate.generator import GENERATOR_KINDS
from compclip.judge.chooser import JUDGE_KINDS, load_kind
from compclip.judge.config import SeedsOfTraining, Training
from compclip.score.config import Fid, Scoring
from compclip.split.config import DrawConfig
from compclip.text.lexicon import SHARED
from workflow_scripts.places import adjective_lexicons
from workflow_scripts.workflow.plan_base import COMPOSITION_FILES, BasePlan
from workflow_scripts.workflow.rule_values import Wildcards, gpus, section, with_shipped_table

# Sections of the config that a score or a divergence depends on.
DECIDING = {"pairs", "split", "divergence", "judge", "generate", "score"}
# Kinds of the user's own images and models.
USERS_KINDS = ("folder", "diffusers")
MOST_PROCESSES = 16  # of a job that scores
SCORE_FIGURES = ("composed", "scores", "pairs", "loss")


class SourcePlan:
    """Stage dataset: the chosen source, its settings and its tables."""

    def __init__(self, run: BasePlan) -> None:
        name = run.config.dataset.source
        self.module = f"{SOURCES}.{name}"
        source = load_source(name)
        self.is_parallel = source.PARALLEL
        # Whether a noun has one value of a kind, so that all adjectives of a composition exclude
        # each other.
        self.one_value = source.ONE_VALUE
        self.settings = getattr(run.config.dataset, name)
        # The user's files that the source reads.
        self.files: list[str] = []
        if hasattr(self.settings, "reads"):
            self.files = [str(file) for file in self.settings.reads() if file]
        # Tables besides captions and images.
        self.tables = {name: f"{run.data}/{name}.parquet" for name in source.TABLES}


class PairsPlan:
    """Stages pairs and divergence: the lexicons with which captions are read, and the pairs."""

    def __init__(self, run: BasePlan) -> None:
        # Compositions with pairs of their own; all others share those of the data set.
        self.unshared = [name for name in run.compositions if name not in SHARED]
        # Of each composition, also where some share theirs.
        folders = [layout.read for layout in run.layouts.values()]
        self.of_compositions = [str(folder / "pairs.parquet") for folder in folders]
        self.tables = list(dict.fromkeys(self.of_compositions))
        self.lexicons = [adjective_lexicons(composition) for composition in run.compositions]
        self.all_lexicons = sorted(set().union(*self.lexicons))


class SplitPlan:
    """Stage split: how the held-out pairs are found, and which steps a cluster runs together."""

    def __init__(self, run: BasePlan) -> None:
        self._run = run
        config = run.config.split
        self.params = {"dataset": run.dataset, "seed": run.config.seeds.split}
        # The steps of a composition are one job of a cluster, unless shards divide them.
        self.group = "split" if run.config.dataset.shards == 1 else None
        # Whether the images are divided by divergence, from which the held-out pairs follow.
        self.is_divided = config.method == "divergence"
        self.is_published = config.published is not None
        # Whether the settings of the draw are chosen from the captions.
        self.is_chosen = config.is_chosen
        is_listed = bool(config.heldout.pairs)
        self.heldout_needs_pairs = self.is_divided or is_listed or self.is_chosen
        self.heldout_needs_lexicons = self.is_published or is_listed or self.is_chosen
        self.draw = section(config.heldout, DrawConfig)
        # The summaries of the steps that read published files.
        self.published_reports = [
            f"{run.in_composition}/{name}.json" for name in ("heldout", "splits", "swapped")
        ]
        # What the section of the page on the split shows.
        tables = ("splits.parquet", "swapped.parquet", "prompts.parquet", "ranking.parquet")
        self.page_files = run.of_compositions(*tables)
        self.page_files.append(f"{run.data}/captions.parquet")
        self.page_files += run.of_compositions("heldout.json", "widths.json", "audit.json")

    def listed_pairs(self, wildcards: Wildcards) -> list[str]:
        """Return the held-out pairs that the config lists."""
        return self._run.config.split.heldout.listed(wildcards.composition)

    def published_split(self, wildcards: Wildcards) -> str | None:
        """Return the published split.pkl of a composition, if there is one."""
        return self._published("split", wildcards.composition)

    def published_data(self, wildcards: Wildcards) -> str | None:
        """Return the published data.pkl of a composition, if there is one."""
        return self._published("data", wildcards.composition)

    def _published(self, kind: Literal["split", "data"], composition: str) -> str | None:
        published = self._run.config.split.published
        return published.file(kind, composition) if published else None

    def published_contents(self, wildcards: Wildcards) -> str:
        split = self.published_split(wildcards)
        data = self.published_data(wildcards)
        return self._run.contents_of(split, data)


class JudgePlan:
    """Stage judge: the folders of the judges, and what each is trained from."""

    def __init__(self, run: BasePlan) -> None:
        self._run = run
        # Of all compositions, each judge once.
        layouts = run.layouts.values()
        folders = [str(layout.judge(judge)) for judge in run.judges for layout in layouts]
        self.folders = list(dict.fromkeys(folders))
        self.of_composition = [f"{run.judged}/judges/{judge}" for judge in run.judges]
        self.kinds = {name: load_kind(entry.kind) for name, entry in run.further_judges.items()}
        # Settings and seed of each further judge that is trained, by the name of its folder.
        self._trained: dict[str, tuple[SeedsOfTraining, int]] = {}
        # The folders of each further judge's members; none of a judge that is not trained here.
        self._members: dict[str, list[str]] = {}
        for name, entry in run.further_judges.items():
            settings = entry.settings("")
            self._members[name] = []
            if isinstance(settings, SeedsOfTraining):
                for seed in run.config.seeds_of(settings):
                    member = f"{name}-{seed}"
                    self._trained[member] = (settings, seed)
                    self._members[name].append(member)
        # The leading judge has the short form of the config.
        self._members[run.config.leading] = list(run.judges)
        # A table has answers to the run's prompts alone.
        self.certified = [run.config.leading]
        self.certified += [name for name, kind in self.kinds.items() if kind.CERTIFIED]
        # The names of all judges that are trained, or used unchanged.
        self.trained = [*run.judges, *self._trained]
        self._fingerprints: dict[tuple[str, str], str] = {}

    def _config(self, wildcards: Wildcards) -> Training:
        config: Training = self._run.config.judge
        if wildcards.judge in self._trained:
            config, _ = self._trained[wildcards.judge]
        # In the path of the weights, {composition} is replaced. A shared judge has no composition.
        return with_shipped_table(config.of(wildcards.get("composition", "")))

    def files(self, wildcards: Wildcards) -> list[str]:
        """Return the user's files that decide the initial weights."""
        return self._config(wildcards).files()

    def contents(self, wildcards: Wildcards) -> str:
        return self._run.contents_of(*self.files(wildcards))

    def settings(self, wildcards: Wildcards) -> dict[str, Any]:
        return section(self._config(wildcards), Training)

    def seed(self, wildcards: Wildcards) -> int:
        if wildcards.judge in self._trained:
            return self._trained[wildcards.judge][1]
        return int(wildcards.judge)

    # Further judges, by the wildcard of their name

    def member_folders(self, wildcards: Wildcards) -> list[str]:
        """Return the folders of a further judge's trained members."""
        return [f"{self._run.judged}/judges/{name}" for name in self._members[wildcards.judge]]

    def kind(self, wildcards: Wildcards) -> str:
        if wildcards.judge == self._run.config.leading:
            return "clip"
        return self._run.further_judges[wildcards.judge].kind

    def kind_code(self, wildcards: Wildcards) -> str:
        """Return the identity of the code of a further judge's kind."""
        return code_hash(f"{JUDGE_KINDS}.{self.kind(wildcards)}")

    def kind_settings(self, wildcards: Wildcards) -> dict[str, Any]:
        """Return the settings of a further judge's kind for a composition."""
        if wildcards.judge == self._run.config.leading:
            return section(self._run.config.judge, SeedsOfTraining)
        entry = self._run.further_judges[wildcards.judge]
        return section(entry.settings(wildcards.composition))

    def kind_contents(self, wildcards: Wildcards) -> str:
        """Return a fingerprint of the user's files that a further judge reads."""
        if wildcards.judge not in self.kinds:
            return ""
        compute = self.kinds[wildcards.judge].fingerprint
        if compute is None:
            return ""
        key = (wildcards.judge, wildcards.composition)
        if key not in self._fingerprints:
            settings = self._run.further_judges[wildcards.judge].settings(wildcards.composition)
            self._fingerprints[key] = compute(settings, self._run.config.cache)
        return self._fingerprints[key]


class GeneratePlan:
    """Stage generate: what each generator is, reads and asks for."""

    def __init__(self, run: BasePlan) -> None:
        self._run = run
        kind_names = {name: generator.kind for name, generator in run.generators.items()}
        # Generators of a known skill, which are not ranked.
        self.controls = [name for name, kind in kind_names.items() if kind not in USERS_KINDS]
        # Those that record what they draw; those that run a model by torch; and all others.
        self.with_scenes = [name for name, kind in run.kinds.items() if kind.SCENES]
        self.with_model = [name for name, kind in run.kinds.items() if kind.MODEL]
        special = {*self.with_scenes, *self.with_model}
        self.plain = [name for name in run.generators if name not in special]
        # What the page says about each generator.
        self.descriptions = {name: kind.ABOUT for name, kind in run.kinds.items() if kind.ABOUT}
        self._fingerprints: dict[tuple[str, str], str] = {}

    def tables(self, wildcards: Wildcards) -> list[str]:
        """Return the tables that the generator's kind reads."""
        paths = []
        for name in self._run.kinds[wildcards.generator].TABLES:
            if name == "pairs":
                paths.append(self._run.pairs_table(wildcards))
            elif name in COMPOSITION_FILES:
                paths.append(f"{self._run.data}/{wildcards.composition}/{name}.parquet")
            else:
                paths.append(f"{self._run.data}/{name}.parquet")
        return paths

    def kind_code(self, wildcards: Wildcards) -> str:
        """Return the identity of the code of the generator's kind."""
        return code_hash(f"{GENERATOR_KINDS}.{self._run.generators[wildcards.generator].kind}")

    def settings(self, wildcards: Wildcards) -> dict[str, Any]:
        return section(self._run.generators[wildcards.generator])

    def contents(self, wildcards: Wildcards) -> str:
        """Return a fingerprint of the user's files that the generator reads."""
        compute = self._run.kinds[wildcards.generator].fingerprint
        if compute is None:
            return ""
        settings = self._kind_settings(wildcards)
        # Compositions with equal settings share it: a folder may contain a million images.
        key = (wildcards.generator, settings.model_dump_json())
        if key not in self._fingerprints:
            self._fingerprints[key] = compute(settings, self._run.config.cache)
        return self._fingerprints[key]

    def threads(self, wildcards: Wildcards) -> int:
        """Return the threads of a generator's model; other kinds do not rerun when the config's
        number changes.
        """
        return self._run.config.threads if wildcards.generator in self.with_model else 2

    def gpus(self, wildcards: Wildcards) -> int:
        return gpus(getattr(self._kind_settings(wildcards), "device", "cpu"))

    def manifests_of(self, composition: str) -> list[str]:
        paths = self._run.manifests(self._run.generators)
        return [path.replace(COMPOSITION_FIELD, composition) for path in paths]

    def _kind_settings(self, wildcards: Wildcards) -> Any:
        return self._run.generators[wildcards.generator].settings(wildcards.composition)


class ScorePlan:
    """Stage score: who is scored by whom, and where the scores are."""

    def __init__(
        self, run: BasePlan, source: SourcePlan, judge: JudgePlan, generate: GeneratePlan
    ) -> None:
        self._run = run
        config = run.config
        self.section = section(config.score, Scoring)
        # Params of the rules that score generators, and of the rules that encode with a judge.
        self.params = {
            **run.location_params,
            **run.seen_params,
            "scoring": self.section,
            "seed": config.seed,
            "prompts": config.split.prompts,
        }
        self.encoding_params = {
            "batch": config.score.batch,
            **run.model_params(config.judge.device),
        }
        # Each judge encodes the images of all generators, and the real ones.
        self.minutes = 20 * len(run.judges) * (len(run.generators) + 1)
        # The test splits for which each generator makes images.
        self.served_splits: dict[str, list[str]] = {
            name: list(kind.SPLITS) for name, kind in run.kinds.items()
        }
        faithful = [name for name, entry in run.generators.items() if entry.kind == "faithful"]
        # The first generator that draws what is asked; the bias check also measures on it.
        self.faithful_generator = faithful[0] if faithful else None
        # The bias check of each judge for a composition, and for all of them.
        names = [f"bias/{judge}.json" for judge in run.judges]
        # What judges choose on right and wrong texts, and on the run's prompts.
        certified = judge.certified if run.further_judges else []
        self.certificates = run.of_compositions(
            *(f"certificates/{name}.json" for name in certified)
        )
        self.certificate_items = run.of_compositions(
            *(f"certificates/{name}.parquet" for name in certified)
        )
        self.choices = run.of_compositions(
            *(f"choices/{name}.parquet" for name in run.further_judges)
        )
        self.bias_checks_of_composition = [f"{run.in_composition}/{name}" for name in names]
        self.bias_checks = run.of_compositions(*names)
        names = [f"{judge}/{name}" for judge in run.judges for name in run.generators]
        self.scores = run.of_compositions(*(f"scores/{name}" for name in names))
        # Generators whose Fréchet distance is measured.
        self.fid_generators = list(run.generators) if config.score.fid else []
        self.fids = run.of_compositions(*(f"fid/{name}.json" for name in self.fid_generators))
        self.fid_weights = (config.score.fid or Fid()).weights
        self.oracle_generators = self._with_known_scenes(source)
        self.oracle_splits = {name: self.served_splits[name] for name in self.oracle_generators}
        self.oracle_scores = run.of_compositions(
            *(f"scores/oracle/{name}" for name in self.oracle_generators)
        )
        self.scenes = [
            f"{run.in_composition}/generated/{name}/scenes.parquet" for name in generate.with_scenes
        ]

    def processes(self, cores: int | None) -> int:
        """Return the processes of a job that scores: an equal part of the run's cores for each
        composition.
        """
        # Torch with several threads cannot be forked.
        if cores is None or self._run.config.threads > 1:
            return 1
        part = cores // len(self._run.compositions)
        return min(max(1, part), MOST_PROCESSES)

    def memory(self, cores: int | None) -> int:
        """Return the MB of a job that scores: as many for each judge that scores at the same
        time.
        """
        judges = min(self.processes(cores), len(self._run.judges))
        return 4000 * (1 + judges)

    def _with_known_scenes(self, source: SourcePlan) -> list[str]:
        """Return the generators that record their scenes, and those that show real sketches."""
        if not {"scenes", "facts"} <= source.tables.keys():
            return []
        kinds = self._run.kinds.items()
        return [name for name, kind in kinds if kind.SCENES or kind.REAL_IMAGES]

    def served(self, wildcards: Wildcards) -> list[str]:
        return self.served_splits[wildcards.generator]

    def of_composition(self, composition: str) -> list[str]:
        """Return the scores and bias checks of a composition."""
        folder = f"{self._run.data}/{composition}/"
        files = [*self.bias_checks, *self.scores, *self.oracle_scores]
        return [file for file in files if file.startswith(folder)]


class ReportPlan:
    """Stage report: what tables, figures and pages show."""

    def __init__(self, run: BasePlan, score: ScorePlan) -> None:
        self._run = run
        config = run.config
        # Where the scores of all compositions and generators are.
        self.entry_params = {
            **run.location_params,
            "compositions": run.compositions,
            "shared": config.judge.shared,
            "generators": list(run.generators) if config.scored else [],
        }
        # The same, and settings of the table and the page.
        self.table_params = {
            **self.entry_params,
            "judges": run.judges,
            "fid": score.fid_generators,
            "reference": config.reference,
            "max_bias": config.score.max_bias,
            "anchors": config.anchors,
            "training_data": config.training_data,
        }
        # Stages with a section (workflow_scripts/<stage>/section.py) on the page of a run.
        self.sections = [name for name in ("specs", "compun") if getattr(config, name)]
        # What several judges say is shown before other stages.
        self.compared_judges: list[str] = []
        if config.judges and config.scored:
            self.sections.insert(0, "judge")
            self.compared_judges = [f"{run.results}/judges.{ending}" for ending in ("csv", "json")]
        self.further_kinds = {name: entry.kind for name, entry in run.further_judges.items()}
        self.section_modules = [f"workflow_scripts.{stage}.section" for stage in self.sections]
        self.deciding_settings = config.model_dump(mode="json", include=DECIDING)
        # The figures of a composition, by name.
        stem = f"{run.results}/figures/{run.dataset}_{COMPOSITION_FIELD}"
        self.figures = {name: f"{stem}_{name}.svg" for name in SCORE_FIGURES}
        # All figures of the page, except those in the sections of other stages.
        self.shown_figures: list[str] = []
        if config.scored:
            for figure in self.figures.values():
                self.shown_figures += run.in_each_composition(figure)
        # The artifacts of judged images and their prompts, except pairs.
        examples: list[str] = []
        for layout in run.layouts.values():
            for judge in run.judges:
                examples += layout.examples(run.generators, judge)
        self.examples = list(dict.fromkeys(examples))

    def shown_settings(self, stage: str) -> dict[str, Any]:
        """Return the settings that the page of one stage shows."""
        return self._run.config.model_dump(mode="json", include={"seed", "dataset", stage})
