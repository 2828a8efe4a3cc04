"""The one exception whose message is meant for the user's eyes."""


class UserError(Exception):
    """Something the user can mend.

    The message is one line: it names the file, the row or the key, and says what to do.
    ``cli.run`` prints it without a traceback and exits with 1.
    """
