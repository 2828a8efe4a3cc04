"""Read the arguments of the library's public functions by the kinds in their signatures
(``arguments``).
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from pydantic import ValidationError, validate_call

from compclip.core.errors import UserError

F = TypeVar("F", bound=Callable[..., Any])


def checked(function: F) -> F:
    """Read a function's arguments by the kinds in its signature; UserError names the first that
    cannot be read.
    """
    names = list(inspect.signature(function).parameters)
    read = validate_call(config={"arbitrary_types_allowed": True})(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return read(*args, **kwargs)
        except ValidationError as error:
            fault = error.errors()[0]
        argument, *rows = fault["loc"]
        name = names[argument] if isinstance(argument, int) else argument
        row = "".join(f"{row}: " for row in rows if isinstance(row, int))
        message = fault["msg"].removeprefix("Value error, ")
        # Our own messages, raised as ValueErrors, contain the value.
        if fault["type"] != "value_error":
            message += f", got {type(fault['input']).__name__} {ascii(fault['input'])[:40]}"
        raise UserError(f"{name}: {row}{message}")

    return cast("F", call)
