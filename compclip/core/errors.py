"""The exception whose message is written for users."""


class UserError(Exception):
    """An error that the user can fix: one line on where (file, row, key), what is wrong and what to do."""


def require(holds: object, where: object, fault: str, remedy: str = "") -> None:
    """Raise UserError with place, fault and remedy unless ``holds`` is true."""
    if not holds:
        raise UserError(f"{where}: {fault}{remedy and f'; {remedy}'}")
