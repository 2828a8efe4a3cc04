"""Draw compounds, their images and texts about them, and training pictures for small CLIPs."""

from collections.abc import Collection, Iterable
from pathlib import Path

import pandas as pd

from compclip.compun.config import TRAININGS, Drawn
from compclip.compun.draw_compounds import SIZE, TrainingPicture, draw_compounds
from compclip.core.artifacts.files import atomic_folder, write_json, write_text
from compclip.core.artifacts.parquet import empty_table, write_table
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.tables import CAPTIONS, IMAGES, SPLIT
from compclip.dataset.sketch.draw import png
from workflow_scripts.job import Job, run_script


def write_pictures(
    pictures: Iterable[TrainingPicture], output: Path
) -> tuple[dict[str, str], pd.DataFrame]:
    """Write the training pictures; return the training sets of each, and the table of captions."""
    trainings = {}
    captions: list[tuple[str, int, None, str]] = []
    with atomic_folder(output) as folder:
        # Drawn one by one, so that their number is not known before.
        for index, (training, image, lines) in enumerate(
            track(pictures, None, "training pictures")
        ):
            name = f"{index:05d}"
            trainings[name] = training
            (folder / f"{name}.png").write_bytes(png(image))
            captions += [(name, number, None, text) for number, text in enumerate(lines)]
    table = pd.DataFrame(captions, columns=["image_id", "caption_id", "class_id", "text"])
    # All classes are None, so pandas cannot infer their type.
    return trainings, table.astype({"class_id": "str"})


def image_table(names: Collection[str], folder: Path) -> pd.DataFrame:
    """Return the table of the training pictures; ``folder``: relative to the results."""
    # All other columns of the schema stay empty.
    table = empty_table(IMAGES).reindex(range(len(names)))
    paths = [f"{folder}/{name}.png" for name in names]
    table = table.assign(image_id=[*names], path=paths, width=SIZE, height=SIZE)
    return table.astype({"width": "Int64", "height": "Int64"})


def main(job: Job) -> None:
    write = job.output
    drawn = Drawn.model_validate(job.params.drawn)
    listed, images, captions, descriptions, pictures = draw_compounds(drawn, job.params.seed)
    with atomic_folder(write.images) as folder:
        for name, image in images.items():
            (folder / f"{name}.png").write_bytes(png(image))
    listing = listed.to_csv(index=False, lineterminator="\n")
    write_text(listing, write.listed)
    write_json(captions, write.captions)
    write_json(descriptions, write.descriptions)

    # Both trainings share captions and images; each has its own splits.
    captions_file, images_file, *split_files = write.training
    trainings, training_captions = write_pictures(pictures, write.pictures)
    pictures_folder = write.pictures.relative_to(job.params.results)
    write_table(image_table(trainings, pictures_folder), images_file, IMAGES)
    write_table(training_captions, captions_file, CAPTIONS)
    for training, file in zip(TRAININGS, split_files, strict=True):
        # Pictures of the other training set are in no split; test_seen serves as validation.
        splits = {"both": "train", "validation": "test_seen", training: "train"}
        rows = [(name, splits[group]) for name, group in trainings.items() if group in splits]
        table = pd.DataFrame(rows, columns=["image_id", "split"])
        write_table(table, file, SPLIT)
        log.info("%s: %d pictures", training, len(rows))


if __name__ == "__main__":
    run_script(main)
