# divergence: what is measured.


def divergence_tables(wildcards):
    """The divergences of all compositions."""
    return [f"{RESULTS}/{DATASET}/{composition}/divergence.parquet" for composition in CONFIG.compositions]


def subgraph_options(wildcards):
    """The option that asks for subgraphs of the parse, or none."""
    sizes = CONFIG.divergence.subgraphs
    return ["--subgraphs", sizes.nodes, sizes.branching, sizes.keep] if sizes else []
