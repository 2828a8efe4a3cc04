"""Read and check the arguments of the library's public functions, each kind of argument in one
place.

A signature names the kinds (``similarity: Matrix``); ``calls.checked`` reads each argument by its
kind before the function runs. So NaN never reaches a comparison, and rows that do not join are an
error that names the first. Blocks of tables (``tables.in_blocks``) were checked when the workflow
read them, and pass.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray, ExtensionDtype
from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    WrapValidator,
)

from compclip.core import limits
from compclip.core.errors import UserError, require
from compclip.core.reading.normal import VISIBLE, normalize
from compclip.core.reading.records import CONTROL, NOT_TEXT, is_count
from compclip.core.settings.section import Count
from compclip.core.tables import (
    CAPTION_KEY,
    CAPTIONS,
    DIVISION,
    IMAGES,
    PAIRS,
    PROMPTS,
    RANKING,
    SPLIT,
    SWAPPED,
    VARIANTS,
    Column,
    Schema,
    are_among,
    schema,
    text,
)

ENTRIES = Schema(
    {**CAPTIONS.columns, "draw": PROMPTS.columns["draw"], "pair": PROMPTS.columns["pair"]}
)
CAPTION = Schema(
    CAPTIONS.columns
)  # that each is there once is checked with the numbers that it may get
AT_ONCE = (
    1 << 24
)  # numbers that are checked at once, so that a large matrix needs little more memory
AS_TEXT = "read tables with pandas.read_csv(..., dtype=str), so that ids stay texts"


def need(holds: object, fault: str) -> None:
    """Raise ValueError, to which ``checked`` adds the argument's name, unless ``holds`` is true."""
    if not holds:
        raise ValueError(fault)


def refuse(is_bad: Any, values: Any, expected: str, prefix: str = "", first: int = 0) -> None:
    """Raise ValueError with the first of ``values`` that ``is_bad``, and its row; ``first``: the
    number of row 0.
    """
    is_bad = np.asarray(is_bad)
    if is_bad.any():
        row, *column = np.argwhere(is_bad)[0].tolist()
        value = ascii(np.asarray(values).item(row, *column))[:40]
        position = f"row {first + row}" + "".join(f", column {number}" for number in column)
        raise ValueError(f"{prefix}{position}: expected {expected}, got {value}")


def read_numbers(
    values: Any,
    dimensions: tuple[int, ...] = (1,),
    low: float = -np.inf,
    high: float = np.inf,
    missing: bool = False,
    kinds: str = "fiu",
) -> np.ndarray:
    """Return an array of finite numbers, from ``low`` to ``high``, from lists, tables and tensors
    on any device.

    ``missing``: NaN is allowed. ``kinds``: those of allowed dtypes.
    """
    try:
        if hasattr(values, "detach"):  # a tensor; torch is not imported here
            values = values.detach().cpu()
            # numpy has no bfloat16.
            if values.is_floating_point() and values.element_size() < 4:
                values = values.float()
        array = np.asarray(values)
        if array.dtype == object and isinstance(values, pd.Series | pd.DataFrame | ExtensionArray):
            # Nullable numbers or Arrow's.
            are_numbers = all(dtype.kind in kinds for dtype in pd.DataFrame(values).dtypes)
            array = values.to_numpy(float, na_value=np.nan) if are_numbers else array
    except Exception as error:  # of another library's array
        reason = " ".join(str(error).split())[:80]
        raise ValueError(f"not an array of numbers ({reason})") from error
    need(array.dtype.kind in kinds, f"expected an array of real numbers, got {array.dtype}")
    need(not np.ma.is_masked(values), "an array with masked values; give only the others")
    need(
        array.ndim in dimensions and array.size,
        f"expected an array of numbers, got one of shape {array.shape}",
    )
    expected = "a finite number" + ("" if low == -np.inf else f" from {low:g} to {high:g}")
    step = max(1, AT_ONCE // array[0].size)
    for start in range(0, len(array), step):
        block = array[start : start + step]
        is_good = np.isfinite(block) & (block >= low) & (block <= high)
        refuse(~is_good & ~(missing & np.isnan(block)), block, expected, first=start)
    return array


def read_ends(value: Any) -> tuple[float, ...]:
    ends = read_numbers(value)
    need(len(ends) == 2 and ends[0] < ends[-1], "expected the smaller and the larger end")
    return tuple(ends.tolist())


def read_vectors(value: Any) -> Any:
    """Return a tensor (n, d) of floats as it is, without reading its values, which would wait for a
    GPU.
    """
    is_floats = hasattr(value, "detach") and value.is_floating_point()
    is_tensor = is_floats and value.ndim == 2 and value.numel()
    need(is_tensor, "expected a tensor of floats (n, d); convert an array by torch.from_numpy")
    need(value.element_size() > 1, f"expected at least 16 bits per number, got {value.dtype}")
    return value


def text_fault(value: object) -> str | None:
    """Return what is wrong with a text, None if it can be read."""
    if not isinstance(value, str):
        return f"expected a text, got {ascii(value)[:40]}"
    if not VISIBLE.search(value):
        return "blank text"
    wrong = NOT_TEXT.search(value)
    return f"text with the character U+{ord(wrong[0]):04X}" if wrong else None


def check_texts(rows: Iterable[tuple[Any, Any]], column: str = "") -> None:
    """Raise ValueError for the first of ``rows``, pairs of its number and value, that is not a
    text.
    """
    for row, value in rows:
        fault = text_fault(value)
        need(not fault, f"{column}row {row}: {fault}")


def read_list(value: Any) -> list[Any]:
    """Return the values of a list, array or column."""
    values = value
    if hasattr(value, "tolist"):
        values = value.tolist()
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        values = list(value)
    # An array of 0 dimensions gives a number.
    if not isinstance(values, list):
        raise ValueError(f"expected a list, such as [{ascii(values)[:40]}]")
    return values


def read_ids(values: pd.Series, column: str = "", missing: bool = False) -> pd.Series:
    """Return ids as texts. Floats are refused: they come from a column with a missing value, and
    lost leading zeros.
    """
    refuse(values.isna() & (not missing), values, "an id", column)
    kind = "string"
    if values.dtype != "str":
        kind = pd.api.types.infer_dtype(values.astype(object), skipna=True)
    if kind == "integer":
        return values.astype("str")
    need(kind in ("string", "empty"), f"{column}ids are {kind}, not texts; {AS_TEXT}")
    check_texts(suspects(values), column)
    return values


def suspects(values: pd.Series) -> Iterable[tuple[Any, Any]]:
    """Return the row and the value of all values that may not be texts, none of which is
    missing.
    """
    values = values.reset_index(drop=True).dropna()
    # This type has no lone surrogates, and Arrow searches ten times as fast as a loop.
    if values.dtype == "str":
        is_blank = ~values.str.contains(VISIBLE.pattern)
        return values[is_blank | values.str.contains(CONTROL.pattern)].items()
    # Ids repeat; an error names the first row of each.
    return values.drop_duplicates().items()


def read_names(value: Any, missing: bool = False) -> np.ndarray:
    """Return ids (n,), texts or whole numbers, as objects; ``missing``: None where there is
    none.
    """
    names = pd.Series(read_list(value), dtype=object)
    read_ids(names, missing=missing)
    return names.to_numpy()


def read_image_ids(value: Any) -> pd.DataFrame:
    """Return a table of the ids of images as texts."""
    return pd.DataFrame({"image_id": read_ids(pd.Series(read_list(value), dtype=object))})


def read_counts(values: pd.Series, column: str) -> pd.Series:
    """Return whole numbers of at least 0, also if they are texts, as integers."""
    if values.dtype == "int64" and not (values < 0).any():
        return values
    texts = values.astype("str")
    refuse(~is_count(texts), values, "a whole number of at least 0", column)
    return texts.astype("int64")


def as_dtype(values: pd.Series, dtype: str) -> pd.Series:
    """Return a nullable, Arrow's or categorical column as one of ``dtype``, if it may have such
    values.
    """
    if not isinstance(values.dtype, ExtensionDtype) or values.dtype == dtype:
        return values
    if dtype in ("str", "object"):
        return values.astype(object).where(values.notna(), None)
    # convert_dtypes makes integers of floats.
    is_kind = values.dtype.kind in {"float64": "fiu", "bool": "b"}.get(dtype, "iu")
    has_missing = dtype in ("bool", "int64") and values.isna().any()
    return values.astype(dtype) if is_kind and not has_missing else values


def read_table(table: Any, columns: Schema, required: Sequence[str] = ()) -> Any:
    """Return a table with ids as texts and counts as integers; the columns that it has are checked.

    ``required``: the columns that it must have; all if there are none.
    """
    need(isinstance(table, pd.DataFrame), "expected a pandas.DataFrame")
    absent = [name for name in required or columns.columns if name not in table]
    need(not absent, f"no column {', '.join(absent)}")
    need(table.columns.is_unique, "two columns have one name")
    if not table.index.is_unique:
        table = table.reset_index(drop=True)
    for name, column in columns.columns.items():
        if name not in table or table.empty:  # columns without rows have no type
            continue
        prefix = f"column {name}: "
        original = table[name]
        values = as_dtype(original, column.dtype)
        if values is not original:
            table = table.assign(**{name: values})
        if name in ("image_id", "class_id"):
            table = table.assign(**{name: read_ids(values, prefix, column.nullable)})
        elif column.dtype == "int64":
            table = table.assign(**{name: read_counts(values, prefix)})
        else:
            need(not column.fault(values), f"{prefix}{column.fault(values)}")
            check_texts(suspects(values) if column.dtype == "str" else (), prefix)
    repeat = columns.repeat(table)
    need(not repeat, repeat or "")
    return table


def as_captions(
    captions: Any, columns: Schema = CAPTION, required: Sequence[str] = ()
) -> pd.DataFrame:
    """Return captions as a table with image_id and caption_id.

    Args:
        captions: a table with image_id and text; or texts, each of its own image, named "0", "1"
            and so on.
        columns: those to check.
        required: further columns that it must have.

    Returns:
        The table with image_id as text, and with caption_id: if it has none, 0, 1 and so on within
            each image.
    """
    if not isinstance(captions, pd.DataFrame):
        texts = read_list(captions)
        check_texts(enumerate(texts))
        captions = pd.DataFrame({"image_id": map(str, range(len(texts))), "text": texts})
    need(len(captions), "no captions")
    captions = read_table(captions, columns, ["image_id", "text", *required])
    sizes = captions["text"].str.len()
    refuse(sizes > limits.CAPTION, sizes, f"a text of at most {limits.CAPTION:,} characters")
    if "caption_id" not in captions:
        captions = captions.assign(caption_id=captions.groupby("image_id").cumcount())
    key = [name for name in (*CAPTION_KEY, "draw") if name in captions]
    refuse(captions.duplicated(key), captions["image_id"], "each caption once")
    return captions


def plain(image_id: str) -> str:
    """Return an id as it would be if a program had read it as a number."""
    return image_id.removesuffix(".0").lstrip("0")


def require_joined(reference: Any, reference_name: str, **tables: Any) -> None:
    """Raise UserError unless images, and captions, of tables are among those of a reference.

    Blocks, and arguments that are None, pass.
    """
    for name, table in tables.items():
        if not isinstance(table, pd.DataFrame) or not isinstance(reference, pd.DataFrame):
            continue
        key = [column for column in CAPTION_KEY if column in table and column in reference]
        is_apart = ~are_among(table, reference, key)
        if not is_apart.any():
            if {*PAIRS.columns} <= {*table} and "text" in reference:
                require_stated(name, table, reference)
            continue
        first = table[is_apart].head(1)
        # 4 may be what a program made of 0004.
        is_number = first["image_id"].map(plain).isin(reference["image_id"].map(plain)).any()
        remedy = AS_TEXT if is_number else "give tables of the same captions"
        count = f"{is_apart.sum()} rows, the first {is_apart.argmax()}"
        fault = f"{first[key].to_dict('list')} not among the {reference_name}: {count}"
        raise UserError(f"{name}: {fault}; {remedy}")


def require_stated(name: str, pairs: pd.DataFrame, captions: pd.DataFrame) -> None:
    """Raise UserError unless all pairs are at words of their captions, and each word has one
    adjective.
    """
    texts = pairs[CAPTION_KEY].merge(captions, how="left")["text"].tolist()
    ends = pairs[["adjective_start", "adjective_end", "noun_start", "noun_end"]].to_numpy()
    adjective_of_word: dict[str, str] = {}
    rows = zip(texts, pairs["adjective"].tolist(), ends.tolist(), strict=True)
    for row, (caption, adjective, offsets) in enumerate(rows):
        word = caption[offsets[0] : offsets[1]]
        is_same = adjective_of_word.setdefault(word.lower(), adjective) == adjective
        is_stated = is_same and max(offsets) <= len(caption)
        # The slow check only where an offset may be inside a word.
        if not is_stated or _is_inside_word(caption, offsets):
            position = f"{adjective!a} is not at {offsets[:2]} of its caption"
            fault = f"row {row}: {position}, which has {word!a}"
            is_at_words = is_stated and _at_words(caption, offsets)
            require(is_at_words, name, fault, "give the pairs of these captions")


def _is_inside_word(caption: str, offsets: list[int]) -> bool:
    inside = [offset for offset in offsets if 0 < offset < len(caption)]
    return any(caption[offset - 1 : offset + 1].isalnum() for offset in inside)


def _at_words(caption: str, offsets: list[int]) -> bool:
    """Return whether offsets are, in turn, starts and ends of words of a text as it is read."""
    read = normalize(caption)
    starts = set()
    ends = set()
    for word in re.finditer(r"\w+", read.text):
        start, end = read.given(*word.span())
        starts.add(start)
        ends.add(end)
    return starts.issuperset(offsets[::2]) and ends.issuperset(offsets[1::2])


def require_length(size: int, unit: str, **arrays: Any) -> None:
    """Raise UserError unless all arrays that are not None have ``size`` rows."""
    for name, array in arrays.items():
        require(
            array is None or len(array) == size, name, f"expected one row for each of {size} {unit}"
        )


def require_below(size: int, unit: str, **indices: np.ndarray) -> None:
    """Raise UserError unless all indices are below ``size``."""
    for name, index in indices.items():
        require(
            index.max() < size,
            name,
            f"row {index.argmax()}: {index.max()} is out of range, of {size} {unit}",
        )


def _unless_blocks(value: Any, read: Callable[[Any], Any]) -> Any:
    return value if isinstance(value, Iterator) else read(value)


def _number(value: Any) -> Any:
    """Refuse texts and booleans, which pydantic would read as numbers."""
    need(not isinstance(value, str | bool | np.bool_), "expected a number")
    return value


NUMBER = BeforeValidator(_number)


def by(read: Callable[..., Any], **options: Any) -> PlainValidator:
    return PlainValidator(partial(read, **options))


def table(columns: Schema, *required: str) -> PlainValidator:
    return by(read_table, columns=columns, required=required)


Vector = Annotated[Any, by(read_numbers)]
Matrix = Annotated[Any, by(read_numbers, dimensions=(2,))]
Fractions = Annotated[
    Any, by(read_numbers, dimensions=(1, 2), low=0, high=1, missing=True, kinds="fiub")
]
Differences = Annotated[Any, by(read_numbers, dimensions=(1, 2), low=-1, high=1, kinds="fiub")]
Indices = Annotated[Any, by(read_numbers, low=0, kinds="iu")]
Ends = Annotated[Any, by(read_ends)]
Vectors = Annotated[Any, by(read_vectors)]
Names = Annotated[Any, by(read_names)]
Ids = Annotated[Any, by(read_image_ids)]
MaybeNames = Annotated[Any, by(read_names, missing=True)]
Whole = Annotated[int, NUMBER, Field(ge=0)]
Positive = Annotated[Count, NUMBER, Field(ge=1)]
# The sampled score draws as many numbers for each image.
Candidates = Annotated[int, NUMBER, Field(ge=2, le=100_000)]
Fraction = Annotated[float, NUMBER, Field(ge=0, le=1)]
PairNames = list[Annotated[str, Field(pattern="^[^_]+_.")]] | tuple[()]
Captions = Annotated[Any, by(as_captions)]
CaptionBlocks = Annotated[Captions, WrapValidator(_unless_blocks)]
Entries = Annotated[Any, by(as_captions, columns=ENTRIES, required=["path"])]
Pairs = Annotated[Any, table(PAIRS)]
Occurrences = Annotated[Any, table(PAIRS, "image_id", "adjective", "noun")]
OccurrenceBlocks = Annotated[
    Any, table(PAIRS, "image_id", "adjective", "noun", "relation"), WrapValidator(_unless_blocks)
]
Ranking = Annotated[Any, table(RANKING)]
RankedPairs = Annotated[Any, table(RANKING, "adjective", "noun")]
Splits = Annotated[Any, table(SPLIT)]
Swapped = Annotated[Any, table(SWAPPED)]
Division = Annotated[Any, table(DIVISION)]
Images = Annotated[Any, table(IMAGES, "image_id", "path")]
Prompts = Annotated[Any, table(PROMPTS, "split", *CAPTION_KEY, "pair")]
Facts = Annotated[Any, table(schema(image_id=text(), part=text(), value=text()))]
Made = Annotated[Any, table(schema(file_name=Column("str", unique=True), text=text()))]
Variants = Annotated[Any, table(VARIANTS, *CAPTION_KEY, "text")]
