"""What do people say? Tasks from a scored run, pages and a site's files to ask them, and what the answers show."""
