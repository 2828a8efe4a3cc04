"""The pages' section on compound nouns: which image each model chose, by prompt, next to the
paper's results.
"""

from compclip.compun import compun_view, published_results
from compclip.compun.analyze_choices import TIED
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS
from compclip.plot.labels import ALPHA
from compclip.plot.page import PageSection, show_figures
from workflow_scripts.layout import Layout


def section(layout: Layout) -> PageSection:
    folder = layout.data / "compun"
    analysis = compun_view.read_analysis(folder / "analysis.csv")
    compounds = read_table(folder / "compounds.parquet", COMPOUNDS)
    images = read_table(folder / "images.parquet", COMPOUND_IMAGES)
    choices = read_table(folder / "choices" / "choices.parquet", CHOICES)
    models = read_json(folder / "choices" / "choices.json")["models"]
    # The page shows the number of ties, the analysis has their fraction of n answers.
    tie_fractions = compun_view.rows_of(analysis, TIED, usual=False)
    ties = (tie_fractions["value"] * tie_fractions["n"]).round()
    # Relative to the page, which lies in the results folder.
    image_folder = f"{layout.dataset}/compun/images"
    figures = {}
    for name in compun_view.COMPUN_FIGURES:
        figures[name] = show_figures([layout.figure(f"compun_{name}")])[0]
    context = {
        "judged": choices["compound"].nunique(),
        "incomplete": compounds.loc[~compounds["complete"], "compound"].tolist(),
        "ties": int(ties.sum()),
        "answers": len(choices),
        "drawn": (folder / "drawn" / "list.csv").is_file(),
        "images": max(model["images"] for model in models),
        "accuracy": compun_view.accuracy_lines(analysis),
        "differences": compun_view.difference_lines(analysis),
        # Lists of compounds need not name kinds.
        "has_kinds": bool(compounds["kind"].notna().any()),
        "alpha": ALPHA,
        "paper_compounds": published_results.PAPER_COMPOUNDS,
        "shown": compun_view.shown_compounds(choices, images, compounds, image_folder),
        "figures": figures,
    }
    return PageSection("Compound nouns", "compun_section.html.j2", context)
