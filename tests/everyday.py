"""Captions of everyday photographs, in the style of people who describe a picture in one sentence."""

import pandas as pd

from compclip.core.seeds import rng

COLORS = "red blue green white black yellow orange brown gray pink purple tan".split()

# {a}, {b} and {c} are colors.
PATTERNS = """
A {a} fire hydrant beside a parked {b} car.
A {a} and {b} fire hydrant on a sidewalk next to a brick wall.
One {a} and one {b} water slide at a pool.
Two children ride down a {a} water slide into a pool.
The water slide is {a} and the {b} water is calm.
A {a} traffic light hangs over a busy street.
A {a} double decker bus drives past a {b} building.
A man in a {a} t-shirt holds a {b} tennis racket.
A woman wearing a {a} t-shirt and {b} pants is on a skateboard.
Some men in {a} t-shirts are playing with a {b} frisbee.
A small brown teddy bear sits on a {a} chair.
A {a} teddy bear that is holding a {b} heart.
A {a} stop sign on a corner with a {b} sky behind it.
The stop sign is {a} with {b} letters.
A {a} parking meter next to a {b} truck.
A {a} cell phone lies on a {b} table.
A kitchen with {a} cabinets and a {b} stove.
A kitchen counter with a {a} coffee maker and {b} mugs.
A {a} cat is sleeping on a {b} couch.
A {a} dog that is lying on the {b} floor.
The dog is {a} and its collar is {b}.
A {a} and {b} cat sits inside a {c} suitcase.
A bathroom with a {a} shower curtain and {b} tiles.
A {a} toilet in a bathroom with {b} walls.
A {a} train pulls into a station beside a {b} platform.
A {a} steam train with {b} smoke goes over a bridge.
A {a} motorcycle is parked in front of a {b} garage door.
A person on a {a} surfboard rides a wave in the {b} ocean.
A {a} kite flies in a {b} sky.
A baseball player in a {a} uniform swings a {b} bat.
A {a} vase with {b} flowers on a wooden table.
A vase filled with {a} and {b} roses.
A {a} bowl of {b} apples on a counter.
A plate with a hot dog and a {a} cup.
A {a} bird perched on a {b} branch.
A {a} umbrella on a beach with {b} sand.
A group of people under {a} umbrellas walk along a wet street.
A {a} horse stands in a {b} field near a fence.
A {a} cow with a {b} ear tag in a pasture.
A large {a} boat and a small {b} boat in a harbor.
A {a} bench in a park with {b} grass.
A park bench that is {a} sits under a {b} tree.
The walls and ceiling that are {a} make the room bright.
A laptop and mouse which are {a} on a desk.
A {a} pickup truck with a {b} surfboard in the back.
A child with a {a} backpack and a {b} toy truck.
A living room with a {a} leather couch and a {b} coffee table.
A {a} school bus stops at a {b} crosswalk.
A bride in a {a} dress cuts a {b} wedding cake.
A {a} clock tower against a {b} sky.
A man with {a} hair and a {b} tie smiles.
A skier in a {a} jacket and {b} ski boots.
A long {a} train car covered in {b} graffiti.
A {a} wine glass next to a {b} bottle.
A refrigerator that is {a} stands by a {b} trash can.
A {a} elephant walks through tall {b} grass.
""".strip().split("\n")


def texts(number: int, seed: int = 0) -> list[str]:
    """Return ``number`` captions; the patterns take turns."""
    generator = rng(seed, "everyday")
    colors = [generator.choice(COLORS, 3, replace=False) for _ in range(number)]
    return [PATTERNS[i % len(PATTERNS)].format(a=a, b=b, c=c) for i, (a, b, c) in enumerate(colors)]


def captions(images: int, per_image: int = 1, seed: int = 0) -> pd.DataFrame:
    """Return captions.parquet's table: image_id, caption_id, class_id, text."""
    rows = [
        (f"photo{i // per_image:05d}", i % per_image, text) for i, text in enumerate(texts(images * per_image, seed))
    ]
    table = pd.DataFrame(rows, columns=["image_id", "caption_id", "text"])
    table.insert(2, "class_id", pd.Series([None] * len(rows), dtype="str"))
    return table
