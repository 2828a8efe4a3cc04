"""Draw compounds, their images and texts about them, and training pictures for small CLIPs."""

import pandas as pd

from compclip.compun.config import TRAININGS, Drawn
from compclip.compun.draw_compounds import SIZE, draw_compounds
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.tables import CAPTIONS, IMAGES, SPLIT
from compclip.dataset.sketch.draw import png
from compclip.io import atomic_folder, empty_table, write_json, write_table, write_text
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    write, drawn = job.output, Drawn.model_validate(job.params.drawn)
    listed, images, captions, descriptions, pictures = draw_compounds(drawn, job.params.seed)
    with atomic_folder(write.images) as folder:
        for name, image in images.items():
            (folder / f"{name}.png").write_bytes(png(image))
    write_text(listed.to_csv(index=False, lineterminator="\n"), write.listed)
    write_json(captions, write.captions)
    write_json(descriptions, write.descriptions)
    captions_file, images_file, *splits = write.training
    texts, parts, place = [], {}, write.pictures.relative_to(job.params.results)
    with atomic_folder(write.pictures) as folder:
        for index, (part, image, lines) in enumerate(track(pictures, None, "training pictures")):
            parts[name := f"{index:05d}"] = part
            (folder / f"{name}.png").write_bytes(png(image))
            texts += [(name, number, None, text) for number, text in enumerate(lines)]
    table = empty_table(IMAGES).reindex(range(len(parts)))
    table = table.assign(
        image_id=[*parts], path=[f"{place}/{name}.png" for name in parts], width=SIZE, height=SIZE
    )
    write_table(table.astype({"width": "Int64", "height": "Int64"}), images_file, IMAGES)
    columns = ["image_id", "caption_id", "class_id", "text"]
    write_table(
        pd.DataFrame(texts, columns=columns).astype({"class_id": "str"}), captions_file, CAPTIONS
    )
    for training, file in zip(TRAININGS, splits, strict=True):
        split = {"both": "train", "watched": "test_seen", training: "train"}
        rows = [(name, split[part]) for name, part in parts.items() if part in split]
        write_table(pd.DataFrame(rows, columns=["image_id", "split"]), file, SPLIT)
        log.info("%s: %d pictures", training, len(rows))


if __name__ == "__main__":
    run_script(main)
