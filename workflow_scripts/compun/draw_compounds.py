"""Draw compounds, their images and texts about them, and pictures to train small CLIPs on."""

import pandas as pd

from compclip.compun.config import TRAININGS, Drawn
from compclip.compun.draw_compounds import draw_compounds, paint_training, training_split
from compclip.compun.drawn import SIZE
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.tables import CAPTIONS, IMAGES, SPLIT
from compclip.dataset.sketch.draw import png
from compclip.io import atomic_folder, empty_table, write_json, write_table, write_text
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    write, drawn = job.output, Drawn.model_validate(job.params.drawn)
    listed, images, captions, descriptions, pictures = draw_compounds(drawn, job.params.seed)
    with atomic_folder(write.images) as folder:
        for name, image in images.items():
            (folder / f"{name}.png").write_bytes(png(image))
    write_text(listed.to_csv(index=False, lineterminator="\n"), write.listed)
    write_json(captions, write.captions)
    write_json(descriptions, write.descriptions)
    texts, ids = [], [f"{index:05d}" for index in range(len(pictures))]
    with atomic_folder(write.pictures) as folder:
        painted = zip(ids, paint_training(track(pictures, len(pictures), "training pictures")), strict=True)
        for image_id, (image, lines) in painted:
            (folder / f"{image_id}.png").write_bytes(png(image))
            texts += [(image_id, number, None, text) for number, text in enumerate(lines)]
    captions_file, images_file, *splits = write.training
    place = write.pictures.relative_to(job.params.results)
    table = empty_table(IMAGES).reindex(range(len(ids)))
    table = table.assign(image_id=ids, path=[f"{place}/{name}.png" for name in ids], width=SIZE, height=SIZE)
    write_table(table.astype({"width": "Int64", "height": "Int64"}), images_file, IMAGES)
    columns = ["image_id", "caption_id", "class_id", "text"]
    write_table(pd.DataFrame(texts, columns=columns).astype({"class_id": "str"}), captions_file, CAPTIONS)
    for training, file in zip(TRAININGS, splits, strict=True):
        split = training_split([picture.part for picture in pictures], training)
        table = pd.DataFrame({"image_id": ids, "split": split}).dropna()
        write_table(table, file, SPLIT)
        log.info("%s: %d training pictures", training, (table["split"] == "train").sum())


if __name__ == "__main__":
    run(main)
