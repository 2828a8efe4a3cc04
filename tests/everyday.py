"""Captions of everyday photographs, in the style of people who describe a picture in one
sentence.
"""

import pandas as pd

from compclip.core.seeds import rng
from tests.split.worlds import captions_table

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
A kitchen counter with a {a} coffee maker and {b} mugs.
A {a} cat is sleeping on a {b} couch.
The dog is {a} and its collar is {b}.
A {a} and {b} cat sits inside a {c} suitcase.
A {a} steam train with {b} smoke goes over a bridge.
A person on a {a} surfboard rides a wave in the {b} ocean.
A baseball player in a {a} uniform swings a {b} bat.
A vase filled with {a} and {b} roses.
A plate with a hot dog and a {a} cup.
A group of people under {a} umbrellas walk along a wet street.
A {a} cow with a {b} ear tag in a pasture.
A large {a} boat and a small {b} boat in a harbor.
A park bench that is {a} sits under a {b} tree.
The walls and ceiling that are {a} make the room bright.
A laptop and mouse which are {a} on a desk.
A {a} pickup truck with a {b} surfboard in the back.
A living room with a {a} leather couch and a {b} coffee table.
A {a} school bus stops at a {b} crosswalk.
A man with {a} hair and a {b} tie smiles.
A skier in a {a} jacket and {b} ski boots.
A long {a} train car covered in {b} graffiti.
A refrigerator that is {a} stands by a {b} trash can.
""".strip().split("\n")


def captions(number: int) -> pd.DataFrame:
    """Return ``tables.CAPTIONS`` with so many images of a caption each; the patterns take turns."""
    generator = rng(0, "everyday")
    colors = [generator.choice(COLORS, 3, replace=False) for _ in range(number)]
    rows = [
        (f"photo{i:05d}", 0, PATTERNS[i % len(PATTERNS)].format(a=a, b=b, c=c))
        for i, (a, b, c) in enumerate(colors)
    ]
    return captions_table(rows)
