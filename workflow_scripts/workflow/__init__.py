"""The workflow above all stages: the whole config and its page, checks, `make run` and its screen,
`make verify`.
"""
