"""What can be read from the text of a Stan program without comments: parameters with their bounds, and densities."""

import re
from typing import NamedTuple

DENSITY = r"(\w+)_(?:lpdf|lupdf|lpmf|lupmf)\s*\("
SAMPLED = r"(?:^|\)\s|else )\s*(?P<subject>[^~]+?)\s*~\s*(?P<kind>\w+)\s*\((?P<rest>.*)$"
ASSIGNED = r"(?:[\w<>=.,() \[\]]+\s)?(\w+)\s*(?:\[.*?\])?\s*\+?=\s*(.+)$"


class Parameter(NamedTuple):
    """One declaration of the parameters block."""

    name: str
    kind: str
    size: str  # as the type has it, of which the last is a simplex's
    lower: str | None
    upper: str | None


class Prior(NamedTuple):
    """A density that the program gives to an expression, and the sides on which it is truncated."""

    subject: str
    distribution: str
    arguments: list[str]
    is_truncated: tuple[bool, bool]
    text: str


class Program(NamedTuple):
    """Its parameters, the statements of its model and transformed parameters, its functions, and names of its data."""

    parameters: list[Parameter]
    statements: list[str]
    functions: str
    data: set[str]

    @classmethod
    def of(cls, text: str) -> "Program":
        statements = statements_of(block(text, "model")) + statements_of(block(text, "transformed parameters"))
        data = statements_of(block(text, "data")) + statements_of(block(text, "transformed data"))
        names = {found[1] for one in data if (found := re.search(r"(\w+)(?:\s*=.*)?$", one))}
        return cls(_declared(block(text, "parameters")), statements, block(text, "functions"), names)

    def priors(self) -> list[Prior]:
        """Every `subject ~ distribution(...)`, and the first argument of every _lpdf in a `target +=`."""
        found = []
        for statement in self.statements:
            if sampled := re.search(SAMPLED, statement):
                ends = re.search(r"\)\s*T\s*\[\s*(.*?)\s*,\s*(.*?)\s*\]\s*$", sampled["rest"])
                sides = (bool(ends[1]), bool(ends[2])) if ends else (False, False)
                arguments = arguments_of(sampled["rest"])
                found.append(Prior(sampled["subject"], sampled["kind"], arguments, sides, statement))
            if "target +=" in statement:
                is_truncated = any(part in statement for part in ("_lccdf", "_lcdf", "log_diff_exp"))
                for match in re.finditer(DENSITY, statement):
                    subject, *arguments = arguments_of(statement[match.end() :])
                    found.append(Prior(subject, match[1], arguments, (is_truncated, is_truncated), statement))
        return found

    def meaning(self, expression: str) -> set[str]:
        """The names in an expression, and in all that is assigned to these."""
        words, left = set(), names_in(expression)
        while left:
            words |= left
            assigned = [found for one in self.statements if (found := re.match(ASSIGNED, one)) and "~" not in one]
            left = set().union(*(names_in(found[2]) for found in assigned if found[1] in left)) - words
        return words


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b[a-zA-Z]\w*\b", expression))


def statements_of(text: str) -> list[str]:
    """Pieces between semicolons and braces; those inside of brackets, as in `x[{1, 3}]`, part nothing."""
    depth, pieces = 0, [""]
    for character in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if depth == 0 and character in ";{}":
            pieces.append("")
        else:
            pieces[-1] += character
    return [" ".join(piece.split()) for piece in pieces if piece.strip()]


def arguments_of(text: str) -> list[str]:
    """What stands between commas and bars up to the parenthesis that closes."""
    depth, parts = 0, [""]
    for character in text:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if depth < 0:
            break
        if depth == 0 and character in ",|":
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def block(text: str, name: str) -> str:
    """What stands between the braces of a block, or nothing."""
    start = re.search(rf"(?<!transformed )\b{name}\s*\{{", text)
    if start is None:
        return ""
    depth = 1
    for place in range(start.end(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start.end() : place]
    return ""


def _declared(text: str) -> list[Parameter]:
    found = []
    for statement in statements_of(text):
        name = re.search(r"(\w+)$", statement)
        kind = re.match(r"(?:array\s*\[.*?\]\s*)?(\w+)\s*(?:<.*>)?\s*(?:\[(.*)\])?", statement)
        if name is None or kind is None:
            continue
        inside = re.search("<(.*)>", statement)
        lower, upper = (_bound(side, inside[1] if inside else "") for side in ("lower", "upper"))
        found.append(Parameter(name[1], kind[1], (kind[2] or "").strip(), lower, upper))
    return found


def _bound(side: str, bounds: str) -> str | None:
    found = re.search(rf"\b{side}\s*=\s*(.+?)\s*(?:,\s*(?:upper|lower)|$)", bounds)
    return found and found[1]
