"""Numbers in the code that finds, measures and judges: all but 0, 1, 2, a half and sizes, by the syntax tree.

    python -m studies.constants [REF] [--list]

With a REF those of another commit are counted beside. Rooms that show, store or translate are left out.
"""

import argparse
import ast
import subprocess
from collections import Counter
from typing import NamedTuple

PACKAGE = "src/thermocline"
LEFT_OUT = ("bases", "cli", "experimental", "frontends", "opinions", "records", "report", "results", "support")
PLAIN = (0, 1, 2, 0.5)  # with either sign


class Constant(NamedTuple):
    """Where a number stands, and the name it is given there, if any."""

    path: str
    line: int
    name: str
    value: float


def constants_in(path: str, source: str) -> list[Constant]:
    """Numbers of one file; those in subscripts, shapes and axes are sizes of arrays."""
    tree, found = ast.parse(source), []
    skipped = {id(node) for outer in ast.walk(tree) if _is_of_arrays(outer) for node in ast.walk(outer)}
    names = {
        id(node): ast.unparse(outer.targets[0])
        for outer in ast.walk(tree)
        if isinstance(outer, ast.Assign)
        for node in ast.walk(outer.value)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, int | float) or id(node) in skipped:
            continue
        if abs(node.value) not in PLAIN:  # True and False are 1 and 0
            found.append(Constant(path, node.lineno, names.get(id(node), ""), node.value))
    return found


def _is_of_arrays(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return True
    return isinstance(node, ast.keyword) and node.arg in ("axis", "shape", "ndmin", "stacklevel")


def files_of(ref: str | None) -> dict[str, str]:
    """Sources by path, as they are or as they were."""
    listed = ["git", "ls-files", PACKAGE] if ref is None else ["git", "ls-tree", "-r", "--name-only", ref, PACKAGE]
    paths = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    wanted = [path for path in paths if path.endswith(".py") and path.split("/")[2].split(".")[0] not in LEFT_OUT]
    shown = lambda path: ["cat", path] if ref is None else ["git", "show", f"{ref}:{path}"]  # noqa: E731
    return {path: subprocess.run(shown(path), capture_output=True, text=True, check=True).stdout for path in wanted}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("ref", nargs="?")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    for ref in [None] if options.ref is None else [options.ref, None]:
        found = [constant for path, source in files_of(ref).items() for constant in constants_in(path, source)]
        if options.list:
            for constant in found:
                print(f"{constant.path}:{constant.line} {constant.name} {constant.value}")
        rooms = Counter(constant.path.split("/")[2] for constant in found)
        by_room = ", ".join(f"{room} {count}" for room, count in rooms.most_common())
        print(f"{ref or 'now'}: {len(found)} numbers ({by_room})")


if __name__ == "__main__":
    main()
