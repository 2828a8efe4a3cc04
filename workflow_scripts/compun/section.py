"""The pages' section on compound nouns: which image each model chose, by prompt, next to the
paper's results.
"""

from compclip.compun import published, shown
from compclip.compun.analyze_choices import TIED
from compclip.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS
from compclip.io import read_json, read_table
from compclip.plot.labels import ALPHA
from compclip.plot.page import PageSection, show_figures
from workflow_scripts.layout import Layout


def section(layout: Layout) -> PageSection:
    place = layout.data / "compun"
    analysis = shown.read_analysis(place / "analysis.csv")
    compounds = read_table(place / "compounds.parquet", COMPOUNDS)
    choices = read_table(place / "choices" / "choices.parquet", CHOICES)
    ties = shown.rows_of(analysis, TIED, usual=False)
    context = {
        "judged": choices["compound"].nunique(),
        "incomplete": compounds.loc[~compounds["complete"], "compound"].tolist(),
        "ties": int((ties["value"] * ties["n"]).round().sum()),
        "answers": len(choices),
        "drawn": (place / "drawn" / "list.csv").is_file(),
        "images": max(
            model["images"] for model in read_json(place / "choices" / "choices.json")["models"]
        ),
        "accuracy": shown.accuracy_lines(analysis),
        "differences": shown.difference_lines(analysis),
        "has_kinds": bool(compounds["kind"].notna().any()),
        "alpha": ALPHA,
        "paper_compounds": published.PAPER_COMPOUNDS,
        "shown": shown.shown_compounds(
            choices,
            read_table(place / "images.parquet", COMPOUND_IMAGES),
            compounds,
            f"{layout.dataset}/compun/images",
        ),
        "figures": {
            name: show_figures([layout.figure(f"compun_{name}")])[0]
            for name in shown.COMPUN_FIGURES
        },
    }
    return PageSection("Compound nouns", "compun_section.html.j2", context)
