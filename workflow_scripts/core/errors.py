"""The exception whose message is written for users."""


class UserError(Exception):
    """An error that the user can fix.

    The message is one line: where (file, row, key), what is wrong, what to do. ``cli.run`` prints it without a
    traceback and exits with 1.
    """
