"""The exception whose message is written for users."""


class UserError(Exception):
    """An error that the user can fix: one line on where (file, row, key), what is wrong and what to do."""
