"""How much of the code a reader must hold in mind, counted on the syntax tree, which no layout
changes.
"""

import ast
import statistics
import tokenize
from collections.abc import Iterator

import pytest

from compclip.core.identity.code import ROOT

FILES = sorted(
    file for part in ("compclip", "workflow_scripts") for file in (ROOT / part).rglob("*.py")
)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SMALL = 4  # functions of fewer statements have no density
# Words that do not say what a thing is.
VAGUE = set(
    "of to by at after before above below beside between within across near along own other others"
    " some more most least rest found known given made shown said asked held taken kept about head"
    " place places part parts side sides each both all this that what whose where which how why"
    " here now then".split()
)
DIRECTIVES = ("noqa", "type:", "fmt:", "!", "ruff:", "mypy:", "pragma:")


def is_docstring(node: ast.AST) -> bool:
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)


def statements(tree: ast.AST) -> list[ast.stmt]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    return [node for node in nodes if not is_docstring(node) and node is not tree]


def is_packed(node: ast.AST) -> bool:
    """Return whether values that do not belong together are assigned at once."""
    if not isinstance(node, ast.Assign):
        return False
    target, value = node.targets[0], node.value
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return False
    are_constants = all(isinstance(element, ast.Constant) for element in value.elts)
    names = [sorted(map(ast.unparse, side.elts)) for side in (target, value)]
    return len(target.elts) == len(value.elts) and not are_constants and names[0] != names[1]


def bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@pytest.fixture(scope="module")
def trees() -> list[ast.Module]:
    return [ast.parse(file.read_text(encoding="utf-8")) for file in FILES]


@pytest.fixture(scope="module")
def total(trees: list[ast.Module]) -> int:
    return sum(len(statements(tree)) for tree in trees)


def test_a_statement_has_one_idea(trees: list[ast.Module]) -> None:
    densities = []
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef) and len(statements(node)) >= SMALL:
            docstrings = sum(map(is_docstring, ast.walk(node)))
            size = sum(1 for _ in ast.walk(node)) - 2 * docstrings
            densities.append(size / len(statements(node)))
    assert statistics.median(densities) <= 15.5
    assert statistics.quantiles(densities, n=10)[-1] <= 21


def test_values_are_named_one_by_one(trees: list[ast.Module], total: int) -> None:
    nodes = [node for tree in trees for node in ast.walk(tree)]
    assert sum(map(is_packed, nodes)) <= 0.003 * total
    assert sum(isinstance(node, ast.NamedExpr) for node in nodes) <= 0.0015 * total


def test_comprehensions_are_not_nested(trees: list[ast.Module], total: int) -> None:
    outer = [node for tree in trees for node in ast.walk(tree) if isinstance(node, COMPREHENSIONS)]
    nested = [
        node
        for node in outer
        if any(isinstance(inner, COMPREHENSIONS) for inner in ast.walk(node) if inner is not node)
    ]
    assert len(nested) <= 0.001 * total


def test_names_say_what_a_thing_is(trees: list[ast.Module]) -> None:
    names = [name for tree in trees for name in bound_names(tree)]
    vague = [name for name in names if name in VAGUE]
    assert len(vague) <= 0.01 * len(names)


def test_comments_give_reasons(total: int) -> None:
    comments = 0
    for file in FILES:
        with file.open("rb") as lines:
            for token in tokenize.tokenize(lines.readline):
                if token.type == tokenize.COMMENT:
                    comments += not token.string.lstrip("# ").startswith(DIRECTIVES)
    # Whether a comment gives a reason, only a reader can tell.
    assert comments >= 0.118 * total


def test_the_layout_is_the_formatters() -> None:
    skips = [file for file in FILES if "# fmt:" in file.read_text(encoding="utf-8")]
    assert not skips
