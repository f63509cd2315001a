"""Mutation tests of the Python client: python3 scripts/mutate/python-client.py [COUNT] [SEED] [FILE]

Changes one place of the client at a time, at random, in a copy of the repository, makes the blocking twin of it anew, and runs the tests of the
client there. Prints each change that no test has found, and the score. FILE takes the changes from one file, such as _async/run.py. It needs the
packages of `node scripts/local-services.ts ensure python-client`, and takes about five seconds a change.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENT = Path("shared/client-python/agent_engine")
#: These files are generated: `_blocking` from `_async`, and `_characters.py` from a table.
LEFT_OUT = ("_blocking/", "_characters.py", "__init__.py")
TESTS = ("test/conformance/python-client.test.ts", "test/client/python-answers.test.ts", "test/reading/python.test.ts")
TIMEOUT_SECS = 90
#: With the Node of the repository first.
PATH = f"{ROOT}/node_modules/.bin:{os.environ['PATH']}"

COMPARED = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}


def changes_of(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may stand in the place of this one."""
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in COMPARED:
            yield ast.Compare(left, [COMPARED[type(op)]()], [right])
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.BinOp(left, op, right) if type(op) in COMPUTED and not isinstance(left, ast.JoinedStr):
            yield ast.BinOp(left, COMPUTED[type(op)](), right)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)) | ast.Constant(float(value)):
            yield ast.Constant(value + 1)
        case ast.IfExp(_, body, orelse):
            yield body
            yield orelse
        case ast.If() | ast.While():
            yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Return(value) if value is not None:
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()


class Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self._new, node) if node is self._old else self.generic_visit(node)


def annotations_in(tree: ast.AST) -> set[ast.AST]:
    """They mean nothing at run time."""
    found = [getattr(each, name, None) for each in ast.walk(tree) for name in ("annotation", "returns")]
    return {within for each in found if each is not None for within in ast.walk(each)}


def places(file: str) -> list[tuple[str, int, int]]:
    """The file, the number of the node in it, and that of its change."""
    tree = ast.parse((ROOT / CLIENT / file).read_text())
    left_out = annotations_in(tree)
    return [(file, at, which) for at, node in enumerate(ast.walk(tree)) if node not in left_out for which, _ in enumerate(changes_of(node))]


def mutated(file: str, at: int, which: int) -> tuple[str, str]:
    """The text of the changed file, and what was changed."""
    tree = ast.parse((ROOT / CLIENT / file).read_text())
    node = list(ast.walk(tree))[at]
    before = ast.unparse(node).splitlines()[0]
    change = list(changes_of(node))[which]
    text = ast.unparse(ast.fix_missing_locations(Replace(node, change).visit(tree)))
    return text, f"{file}:{node.lineno}: {before}  ->  {ast.unparse(ast.fix_missing_locations(change)).splitlines()[0]}"  # type: ignore[attr-defined]


def run(folder: Path, packages: str) -> bool:
    """Whether all tests pass in this copy."""
    made = [sys.executable, "-B", "scripts/blocking-client.py"]
    env = {**os.environ, "PATH": PATH, "PYTHONPATH": packages}
    if subprocess.run(made, cwd=folder, env=env, capture_output=True, check=False).returncode != 0:
        return False
    units = [sys.executable, "-B", "test/client/python-client.py", "--failfast"]
    paths = {**env, "PYTHONPATH": f"{folder}/shared/client-python:{packages}"}
    return passes(units, folder, paths) and passes(["node_modules/.bin/mocha", "--bail", *TESTS], folder, env)


def passes(command: list[str], folder: Path, env: dict[str, str]) -> bool:
    try:
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=TIMEOUT_SECS, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def copy_to(folder: Path) -> None:
    for name in ("test", "shared", "scripts", "services", "package.json", "tsconfig.json", ".mocharc.json"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__", "pictures"))
        elif source.exists():
            shutil.copy(source, folder / name)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")


def main(count: int = 100, seed: int = 1, only: str = "") -> int:
    files = [str(path.relative_to(ROOT / CLIENT)) for path in sorted((ROOT / CLIENT).rglob("*.py"))]
    found = [place for file in files if not file.startswith(LEFT_OUT) and only in file for place in places(file)]
    chosen = random.Random(seed).sample(found, min(count, len(found)))
    ask = "import('./scripts/local-services/python-client.ts').then(async (it) => console.log(await it.requirePythonClient()))"
    packages = subprocess.run(["node", "-e", ask], cwd=ROOT, env={**os.environ, "PATH": PATH}, capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_to(folder)
        if not run(folder, packages):
            raise SystemExit("the tests fail without a change")
        left = 0
        for place in chosen:
            if (what := survives(folder, packages, *place)) is not None:
                left += 1
                print(what, flush=True)
    print(f"{len(chosen) - left} of {len(chosen)} changes were found, of {len(found)} that are possible")
    return 0


def survives(folder: Path, packages: str, file: str, at: int, which: int) -> str | None:
    text, what = mutated(file, at, which)
    target = folder / CLIENT / file
    original = target.read_text()
    target.write_text(text)
    passes = run(folder, packages)
    target.write_text(original)
    return what if passes else None


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in sys.argv[1:3]), *sys.argv[3:4]))
