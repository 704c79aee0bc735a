"""Why the log Z of a Stan program may not be its evidence: what can be told from its text."""

import re
from typing import NamedTuple

WHOLE_LINE = {
    *("normal", "std_normal", "cauchy", "student_t", "double_exponential", "logistic", "gumbel", "skew_normal"),
    *("exp_mod_normal", "skew_double_exponential", "multi_normal", "multi_normal_cholesky", "multi_normal_prec"),
    *("multi_student_t", "multi_student_t_cholesky"),
}
HALF_LINE = {
    *("lognormal", "gamma", "inv_gamma", "exponential", "weibull", "chi_square", "inv_chi_square", "frechet"),
    *("scaled_inv_chi_square", "rayleigh", "loglogistic", "pareto", "pareto_type_2"),
}
UNIT_INTERVAL = {"beta", "beta_proportion"}
OF_THE_TYPE = {  # constrained types, and the distributions that are normalised on them
    "simplex": {"dirichlet", "logistic_normal"},
    "corr_matrix": {"lkj_corr"},
    "cholesky_factor_corr": {"lkj_corr_cholesky"},
    "cov_matrix": {"wishart", "inv_wishart", "lkj_cov"},
    "cholesky_factor_cov": {"wishart_cholesky", "inv_wishart_cholesky"},
    "ordered": set(),
    "positive_ordered": set(),
    "unit_vector": set(),
    "sum_to_zero_vector": set(),
}
DENSITY = r"(\w+)_(?:lpdf|lupdf|lpmf|lupmf)\s*\("
NORMALISED = re.compile(r"_(?:lpdf|lupdf|lpmf|lupmf|lcdf|lccdf)\b|\blog_mix\b")


class Parameter(NamedTuple):
    """One declaration of the parameters block."""

    name: str
    kind: str
    lower: str | None
    upper: str | None


class Prior(NamedTuple):
    """A density that the program gives to an expression."""

    subject: str
    distribution: str
    is_truncated: bool
    text: str


def caveats_of(program: str) -> tuple[str, ...]:
    """Sentences on a program without comments, in the order of its parameters, then of its `target` statements."""
    parameters, model = _declared(_block(program, "parameters")), _block(program, "model")
    model += " ; " + _block(program, "transformed parameters")
    statements = [" ".join(part.split()) for part in re.split(r"[;{}]", model)]
    priors = _priors(statements)
    sentences = []
    for parameter in parameters:
        own = [prior for prior in priors if re.search(rf"\b{parameter.name}\b", prior.subject)]
        sentences += [_flat(parameter)] if not own else [_lost(parameter, prior) for prior in own]
    sentences += [_added(statement, statements) for statement in statements if statement.startswith("target +=")]
    sentences += [
        f"`{statement}` is about a function of a parameter: log Z is the evidence only if its Jacobian is in `target` "
        "too."
        for statement in statements
        if re.match(r"(log|exp|logit|inv|sqrt|square|inv_logit|log1p|expm1)\(.*~", statement)
    ]
    return tuple(dict.fromkeys(sentence for sentence in sentences if sentence))


def _block(program: str, name: str) -> str:
    """What stands between the braces of a block, or nothing."""
    start = re.search(rf"(?<!transformed )\b{name}\s*\{{" if name == "parameters" else rf"\b{name}\s*\{{", program)
    if start is None:
        return ""
    depth = 1
    for place in range(start.end(), len(program)):
        depth += {"{": 1, "}": -1}.get(program[place], 0)
        if depth == 0:
            return program[start.end() : place]
    return ""


def _declared(block: str) -> list[Parameter]:
    found = []
    for statement in (" ".join(part.split()) for part in block.split(";")):
        name = re.search(r"(\w+)$", statement)
        kind = re.match(r"(?:array\s*\[.*?\]\s*)?(\w+)", statement)
        if name is None or kind is None:
            continue
        inside = re.search("<(.*)>", statement)
        bounds = [_bound(side, inside[1] if inside else "") for side in ("lower", "upper")]
        found.append(Parameter(name[1], kind[1], *bounds))
    return found


def _bound(side: str, bounds: str) -> str | None:
    found = re.search(rf"\b{side}\s*=\s*(.+?)\s*(?:,\s*(?:upper|lower)|$)", bounds)
    return found and found[1]


def _priors(statements: list[str]) -> list[Prior]:
    """Every `subject ~ distribution(...)`, and the first argument of every _lpdf in a `target +=`."""
    found = []
    for statement in statements:
        sampled = re.search(r"(?:^|\)\s|else )\s*(?P<subject>[^~]+?)\s*~\s*(?P<kind>\w+)\s*\((?P<rest>.*)$", statement)
        if sampled:
            truncated = re.search(r"\)\s*T\s*\[", sampled["rest"]) is not None
            found.append(Prior(sampled["subject"], sampled["kind"], truncated, statement))
        if "target +=" in statement:
            for match in re.finditer(DENSITY, statement):
                subject = re.split(r"[|,]", statement[match.end() :])[0]
                truncated = "_lccdf" in statement or "_lcdf" in statement or "log_diff_exp" in statement
                found.append(Prior(subject, match[1], truncated, statement))
    return found


def _flat(parameter: Parameter) -> str:
    """A parameter without a prior is uniform: proper only between two bounds, normalised only if they are 1 apart."""
    if (parameter.lower, parameter.upper) == ("0", "1"):
        return ""
    taken = "an improper flat one: the model has no evidence. Write a prior."
    if parameter.kind in ("simplex", "corr_matrix", "cholesky_factor_corr") or (parameter.lower and parameter.upper):
        volume = "log Z lacks the log of its volume. Write the prior."
        taken = f"a density of 1 on its support, which is not normalised: {volume}"
    return f"{parameter.name} has no prior of its own in the program, so Stan takes {taken}"


def _lost(parameter: Parameter, prior: Prior) -> str:
    """The constant that a declared constraint takes from a prior that is normalised on a larger set."""
    if prior.is_truncated:
        return ""
    said = f"`{prior.text}` is normalised on a larger set than {parameter.name} may take"
    if parameter.kind in OF_THE_TYPE:
        if prior.distribution in OF_THE_TYPE[parameter.kind]:
            return ""
        detail = " (log K! for K exchangeable values in order)" if "ordered" in parameter.kind else ""
        known = prior.distribution in WHOLE_LINE | HALF_LINE | UNIT_INTERVAL
        return f"{said} ({parameter.kind}): log Z lacks a constant{detail}; add it to `target`." if known else ""
    kind, bounds = prior.distribution, (parameter.lower, parameter.upper)
    is_cut = (
        (kind in WHOLE_LINE and any(bounds))
        or (kind in HALF_LINE and (parameter.upper or parameter.lower not in (None, "0")))
        or (kind in UNIT_INTERVAL and bounds not in (("0", "1"), (None, None)))
        or (kind == "uniform" and _is_tighter(parameter, prior))
    )
    written = f"T[{parameter.lower or ''}, {parameter.upper or ''}]"
    return f"{said}: log Z lacks the constant of the truncation. Write {written} behind it." if is_cut else ""


def _is_tighter(parameter: Parameter, prior: Prior) -> bool:
    ends = re.search(r"uniform(?:_lu?pdf)?\s*\((?:[^|]*\|)?\s*([^,]+),\s*([^)]+)\)", prior.text)
    pairs = zip((parameter.lower, parameter.upper), ends.groups(), strict=True) if ends else ()
    return any(bound is not None and bound.strip() != end.strip() for bound, end in pairs)


def _added(statement: str, statements: list[str]) -> str:
    """`target +=` of something that is not visibly a log density."""
    added = statement.removeprefix("target +=").strip()
    sources = [added]
    for name in set(re.findall(r"\b[a-zA-Z]\w*\b", added)):
        sources += [s for s in statements if re.match(rf"(?:\w+(?:\[.*?\])?\s+)?{name}\b(?:\[[^=]*\])?\s*\+?=", s)]
    if any(NORMALISED.search(source) for source in sources):
        return ""
    return (
        f"`{statement}` adds something that is not visibly a normalised log density: log Z is the model's evidence "
        "only if it is."
    )
