# split: which pairs are held out, which images train, which test, what is swapped, what must be
# drawn? Needs captions, pairs and ranking. Gives the splits, the swapped captions, the prompts,
# their audit and the exports.


rule divide_images:
    """Divide the images so that train and test diverge in pairs, but little in words."""
    input:
        **plan.inputs("captions", "pairs", "ranking"),
    output:
        division="<dataset>/{composition}/division.parquet",
        summary="<dataset>/{composition}/division.json",
    log:
        "<logs>/split/{composition}/divide_images.log",
    benchmark:
        "<logs>/split/{composition}/divide_images.benchmark.tsv"
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    resources:
        runtime=growing(120),
    params:
        **plan.split.params,
        code=code("split.divide_images"),
        divergence=section(plan.config.split.divergence),
    script:
        "../workflow_scripts/split/divide_images.py"


rule sample_heldout:
    """Draw the held-out pairs, or take those listed, published, or missing from train."""
    input:
        ranking="<dataset>/{composition}/ranking.parquet",
        pairs=branch(plan.split.heldout_needs_pairs, then=plan.pairs_table),
        division=branch(plan.split.is_divided, then="<dataset>/{composition}/division.parquet"),
        adjectives=branch(plan.split.heldout_needs_lexicons, then=plan.input("adjectives")),
        nouns=branch(plan.split.heldout_needs_lexicons, then=plan.input("nouns")),
        captions=branch(plan.split.is_chosen, then="<dataset>/captions.parquet"),
        compounds=branch(plan.split.is_chosen, then=plan.input("compounds")),
    output:
        heldout="<dataset>/{composition}/heldout.json",
    log:
        "<logs>/split/{composition}/sample_heldout.log",
    benchmark:
        "<logs>/split/{composition}/sample_heldout.benchmark.tsv"
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    params:
        **plan.split.params,
        code=code("split.sample_heldout"),
        draw=plan.split.draw,
        is_chosen=plan.split.is_chosen,
        width=plan.config.split.heldout.width if plan.split.is_chosen else None,
        test_seen=plan.config.split.test_seen if plan.split.is_chosen else None,
        swaps=plan.config.split.swaps if plan.split.is_chosen else None,
        listed=plan.split.listed_pairs,
        published=plan.split.published_split,
        contents=plan.split.published_contents,
    script:
        "../workflow_scripts/split/sample_heldout.py"


rule find_contested:
    """Find the captions of a shard in which word order states a held-out pair, and the parse does
    not.
    """
    input:
        **plan.inputs("captions", "pairs", "heldout", "adjectives", "nouns", "compounds"),
    output:
        contested="<dataset>/{composition}/contested/{shard}-of-{shards}.json",
    log:
        "<logs>/split/{composition}/find_contested.{shard}-of-{shards}.log",
    benchmark:
        "<logs>/split/{composition}/find_contested.{shard}-of-{shards}.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("split.find_contested"),
    script:
        "../workflow_scripts/split/find_contested.py"


rule make_splits:
    """Divide the images into train, test_seen and test_unseen, or take a published or divergent
    division.
    """
    input:
        **plan.inputs("captions", "pairs", "ranking", "heldout", "adjectives", "nouns", "compounds"),
        division=branch(plan.split.is_divided, then="<dataset>/{composition}/division.parquet"),
        contested=branch(
            not plan.split.is_published, then=plan.shards("{composition}/contested", "json")
        ),
    output:
        splits="<dataset>/{composition}/splits.parquet",
        csv="<dataset>/{composition}/splits.csv",
        summary="<dataset>/{composition}/splits.json",
    log:
        "<logs>/split/{composition}/make_splits.log",
    benchmark:
        "<logs>/split/{composition}/make_splits.benchmark.tsv"
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    params:
        **plan.split.params,
        code=code("split.make_splits"),
        test_seen=plan.config.split.test_seen,
        published=plan.split.published_split,
        contents=plan.split.published_contents,
    script:
        "../workflow_scripts/split/make_splits.py"


rule offer_swaps:
    """Find the captions of a shard that can be swapped, and their possible changes."""
    input:
        **plan.inputs("captions", "pairs", "heldout", "splits", "adjectives", "nouns", "compounds"),
        forms="<dataset>/{composition}/splits.json",
    output:
        offers="<dataset>/{composition}/offers/{shard}-of-{shards}.parquet",
        summary="<dataset>/{composition}/offers/{shard}-of-{shards}.json",
    log:
        "<logs>/split/{composition}/offer_swaps.{shard}-of-{shards}.log",
    benchmark:
        "<logs>/split/{composition}/offer_swaps.{shard}-of-{shards}.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("split.offer_swaps"),
        swaps=plan.config.split.swaps,
        seed=plan.config.seeds.split,
    script:
        "../workflow_scripts/split/offer_swaps.py"


rule swap_adjectives:
    """Swap adjectives in the captions of test_seen so that each changed pair is held out, or
    take published swaps.
    """
    input:
        **plan.inputs("captions", "pairs", "heldout", "splits", "adjectives", "nouns", "compounds"),
        forms="<dataset>/{composition}/splits.json",
        shard_tables=branch(
            not plan.split.is_published, then=plan.shards("{composition}/offers", "parquet")
        ),
        shard_counts=branch(
            not plan.split.is_published, then=plan.shards("{composition}/offers", "json")
        ),
    output:
        swapped="<dataset>/{composition}/swapped.parquet",
        summary="<dataset>/{composition}/swapped.json",
    log:
        "<logs>/split/{composition}/swap_adjectives.log",
    benchmark:
        "<logs>/split/{composition}/swap_adjectives.benchmark.tsv"
    priority: 2  # the audit before the training, unless there are cores for both
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    params:
        **plan.split.params,
        code=code("split.swap_adjectives"),
        swaps=plan.config.split.swaps,
        one_value=plan.source.one_value,
        published=plan.split.published_data,
        contents=plan.split.published_contents,
    script:
        "../workflow_scripts/split/swap_adjectives.py"


rule make_prompts:
    """List the prompts for all generators."""
    input:
        **plan.inputs(
            "captions", "images", "pairs", "ranking", "heldout", "splits", "swapped", "accepted"
        ),
    output:
        prompts="<dataset>/{composition}/prompts.parquet",
        jsonl="<dataset>/{composition}/prompts.jsonl",
        summary="<dataset>/{composition}/prompts.json",
        widths="<dataset>/{composition}/widths.json",
    log:
        "<logs>/split/{composition}/make_prompts.log",
    benchmark:
        "<logs>/split/{composition}/make_prompts.benchmark.tsv"
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    params:
        **plan.seen_params,
        **plan.split.params,
        code=code("split.make_prompts"),
        prompts=plan.config.split.prompts,
        draws=plan.config.split.draws,
        per_image=plan.config.split.per_image,
        candidates=undecisive(plan.config.score.candidates),
    script:
        "../workflow_scripts/split/make_prompts.py"


rule vary_prompts:
    """Make the variants of the prompts of a shard."""
    input:
        **plan.inputs(
            "captions", "pairs", "forms", "ranking", "swapped", "prompts", "adjectives", "nouns"
        ),
    output:
        variants="<dataset>/{composition}/variants/{shard}-of-{shards}.parquet",
        summary="<dataset>/{composition}/variants/{shard}-of-{shards}.json",
    log:
        "<logs>/split/{composition}/vary_prompts.{shard}-of-{shards}.log",
    benchmark:
        "<logs>/split/{composition}/vary_prompts.{shard}-of-{shards}.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("split.vary_prompts"),
        one_value=plan.source.one_value,
    script:
        "../workflow_scripts/split/vary_prompts.py"


rule make_variants:
    """Make the variants of each prompt, in which another adjective makes its pair false of the
    image.
    """
    input:
        **plan.inputs(
            "captions", "pairs", "forms", "ranking", "swapped", "prompts", "adjectives", "nouns"
        ),
        shard_tables=plan.shards("{composition}/variants", "parquet"),
        shard_counts=plan.shards("{composition}/variants", "json"),
    output:
        variants="<dataset>/{composition}/variants.parquet",
        summary="<dataset>/{composition}/variants.json",
    log:
        "<logs>/split/{composition}/make_variants.log",
    benchmark:
        "<logs>/split/{composition}/make_variants.benchmark.tsv"
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    params:
        code=code("split.make_variants"),
        one_value=plan.source.one_value,
    script:
        "../workflow_scripts/split/make_variants.py"


rule audit_block:
    """Check the images of a shard by word order alone."""
    input:
        **plan.inputs(
            "captions", "pairs", "heldout", "splits", "swapped", "adjectives", "nouns", "compounds"
        ),
        facts=plan.source.tables.get("facts", []),
    output:
        audit="<dataset>/{composition}/audit/{shard}-of-{shards}.json",
    log:
        "<logs>/split/{composition}/audit_block.{shard}-of-{shards}.log",
    benchmark:
        "<logs>/split/{composition}/audit_block.{shard}-of-{shards}.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("split.audit_block"),
    script:
        "../workflow_scripts/split/audit_block.py"


rule audit:
    """Check a split and its swaps by word order alone, and compare word order with the extracted
    pairs.
    """
    input:
        **plan.inputs(
            "captions", "pairs", "heldout", "splits", "swapped", "adjectives", "nouns", "compounds"
        ),
        facts=plan.source.tables.get("facts", []),
        reports=branch(plan.split.is_published, then=plan.split.published_reports),
        excluded="<dataset>/{composition}/splits.json",
        shards=plan.shards("{composition}/audit", "json"),
    output:
        audit="<dataset>/{composition}/audit.json",
    log:
        "<logs>/split/{composition}/audit.log",
    benchmark:
        "<logs>/split/{composition}/audit.benchmark.tsv"
    priority: 2  # the audit before the training, unless there are cores for both
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    params:
        code=code("split.audit"),
        dataset=plan.dataset,
        on_violation=plan.config.split.on_violation,
    script:
        "../workflow_scripts/split/audit.py"


rule accept_split:
    """Refuse a split in which the audit found violations, before later steps use it."""
    input:
        audit="<dataset>/{composition}/audit.json",
    output:
        accepted="<dataset>/{composition}/accepted.json",
    log:
        "<logs>/split/{composition}/accept_split.log",
    priority: 2  # the audit before the training, unless there are cores for both
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    params:
        code=code("split.accept_split"),
        is_published=plan.split.is_published,
        dataset=plan.dataset,
    script:
        "../workflow_scripts/split/accept_split.py"


rule export:
    """Write the published formats, and the train list for people who train generators."""
    input:
        **plan.inputs("captions", "images", "heldout", "splits", "swapped", "accepted"),
    output:
        folder=directory("<dataset>/{composition}/export"),
    log:
        "<logs>/split/{composition}/export.log",
    benchmark:
        "<logs>/split/{composition}/export.benchmark.tsv"
    group:
        plan.split.group
    conda:
        "../envs/base.yaml"
    params:
        code=code("split.export"),
    script:
        "../workflow_scripts/split/export.py"
