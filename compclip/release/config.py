"""The config's ``release``."""

from typing import Annotated

from pydantic import AfterValidator, Field

from compclip.core.settings.section import NAME, Section

VERSION = r"^[0-9]+\.[0-9]+\.[0-9]+$"


def printable(text: str) -> str:
    """Refuse line breaks, invisible characters and blank ends, so that texts that look equal are
    equal.
    """
    # Invisible characters could make a name look like another one.
    if not text.isprintable() or text != text.strip():
        raise ValueError("expected one line of printable characters")
    return text


Line = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(printable)]


class ReleaseConfig(Section):
    """The name of a release, and the content of its data card."""

    name: str | None = Field(None, pattern=NAME, description="null: the name of the data set")
    version: str = Field(
        "1.0.0", pattern=VERSION, description="semantic version; new scores need a new major one"
    )
    license: Line = Field(
        "other", description="license of captions and images, as the Hub names it"
    )
    creator: str = Field("unknown", min_length=1, description="who releases it")
    url: str = Field(
        "https://example.org/release", min_length=1, description="where it is published"
    )
    description: str = Field("", description="beginning of the data card")
    images: bool = Field(False, description="copy the real images, if their license allows it")
