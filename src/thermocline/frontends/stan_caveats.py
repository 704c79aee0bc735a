"""Why the log Z of a Stan program may not be its evidence: what its text and the numbers in its data tell."""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from thermocline.frontends.stan_program import Parameter, Prior, Program, names_in

WHOLE_LINE = {
    *("normal", "std_normal", "cauchy", "student_t", "double_exponential", "logistic", "gumbel", "skew_normal"),
    *("exp_mod_normal", "skew_double_exponential", "multi_normal", "multi_normal_cholesky", "multi_normal_prec"),
    *("multi_student_t", "multi_student_t_cholesky"),
}
HALF_LINE = {
    *("lognormal", "gamma", "inv_gamma", "exponential", "weibull", "chi_square", "inv_chi_square", "frechet"),
    *("scaled_inv_chi_square", "rayleigh", "loglogistic"),
}
UNIT_INTERVAL = {"beta", "beta_proportion"}
FROM_ARGUMENT = {"uniform", "pareto", "pareto_type_2"}  # where the support begins; a uniform's ends at the second
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
OF_FINITE_VOLUME = {"simplex", "corr_matrix", "cholesky_factor_corr", "unit_vector"}
REARRANGING = {  # functions that only put numbers elsewhere
    *("to_vector", "to_row_vector", "to_matrix", "to_array_1d", "to_array_2d", "head", "tail", "segment", "block"),
    *("row", "col", "sub_row", "sub_col", "diagonal", "reverse", "append_row", "append_col", "append_array"),
}
NORMALISED = re.compile(r"_(?:lpdf|lupdf|lpmf|lupmf|lcdf|lccdf)\b|\blog_mix\b")


class Support(NamedTuple):
    """Where a distribution lives, as a program would write it."""

    lower: str = "-inf"
    upper: str = "inf"


def caveats_of(text: str, data: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Sentences on a program without comments, in the order of its parameters, then of its `target` statements."""
    program, number = Program.of(text), partial(_number, data or {})
    names = {parameter.name for parameter in program.parameters}
    functions, priors = [], []
    for prior in program.priors():
        (functions if _is_of_function(program, names, prior) else priors).append(prior)
    covered = set().union(*(program.meaning(prior.subject) for prior in functions))
    sentences = []
    for parameter in program.parameters:
        own = [prior for prior in priors if parameter.name in names_in(prior.subject)]
        sentences += [_lost(parameter, prior, number) for prior in own]
        sentences += [_flat(parameter, number)] if not own and parameter.name not in covered else []
    sentences += _twice([prior for prior in priors if names & names_in(prior.subject)], program)
    sentences += [_added(one, program) for one in program.statements if one.startswith("target +=")]
    sentences += [
        f"`{prior.text}` is about a function of a parameter: log Z is the evidence only if its Jacobian is in `target` "
        "too."
        for prior in functions
    ]
    return tuple(dict.fromkeys(sentence for sentence in sentences if sentence))


def _number(data: Mapping[str, Any], expression: str) -> float | None:
    """What a bound or a size is, where it is a number or the name of one in the data."""
    value = data.get(expression, expression)
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _is_of_function(program: Program, parameters: set[str], prior: Prior) -> bool:
    """Whether the subject is computed from parameters, and not from data: what is has a likelihood, not a prior."""
    meaning, calls = program.meaning(prior.subject), set(re.findall(r"(\w+)\s*\(", prior.subject))
    is_computed = bool(calls - REARRANGING) or not parameters & names_in(prior.subject)
    return is_computed and bool(meaning & parameters) and not meaning & program.data


def _flat(parameter: Parameter, number: Any) -> str:
    """A parameter without a prior is uniform: proper only in a finite volume, normalised only if that is 1."""
    ends = [number(bound) for bound in (parameter.lower, parameter.upper) if bound is not None]
    if len(ends) == 2 and None not in ends and ends[1] - ends[0] == 1:
        return ""
    if parameter.kind == "simplex" and number(parameter.size) == 2:
        return ""
    taken = "an improper flat one: the model has no evidence. Write a prior."
    if parameter.kind in OF_FINITE_VOLUME or len(ends) == 2:
        volume = "log Z lacks the log of its volume. Write the prior."
        taken = f"a density of 1 on its support, which is not normalised: {volume}"
    return f"{parameter.name} has no prior of its own in the program, so Stan takes {taken}"


def _lost(parameter: Parameter, prior: Prior, number: Any) -> str:
    """The constant that a declared constraint takes from a prior that is normalised on a larger set."""
    said = f"`{prior.text}` is normalised on a larger set than {parameter.name} may take"
    support = _support(prior)
    if parameter.kind in OF_THE_TYPE:
        if support is None or any(prior.is_truncated):
            return ""
        is_whole = "ordered" in parameter.kind and prior.subject == parameter.name
        detail = " (log K! for K exchangeable values in order)" if is_whole else ""
        return f"{said} ({parameter.kind}): log Z lacks a constant{detail}; add it to `target`."
    if support is None:
        return ""
    bounds = parameter.lower, parameter.upper
    is_cut = [_is_inside(*pair, number) for pair in zip(bounds, support, (1, -1), strict=True)]
    if not any(cut and not done for cut, done in zip(is_cut, prior.is_truncated, strict=True)):
        return ""
    written = f"T[{parameter.lower or ''}, {parameter.upper or ''}]"
    return f"{said}: log Z lacks the constant of the truncation. Write {written} behind it."


def _support(prior: Prior) -> Support | None:
    """None where the distribution is not known, or one of a constrained type, on which it is normalised."""
    if prior.distribution in WHOLE_LINE:
        return Support()
    if prior.distribution in HALF_LINE:
        return Support("0")
    if prior.distribution in UNIT_INTERVAL:
        return Support("0", "1")
    if prior.distribution in FROM_ARGUMENT:
        return Support(*prior.arguments[: 2 if prior.distribution == "uniform" else 1])
    return None


def _is_inside(bound: str | None, end: str, side: int, number: Any) -> bool:
    """Whether a bound cuts off a part of the support; one that cannot be known may."""
    if bound is None or bound == end:
        return False
    numbers = number(bound), number(end)
    return None in numbers or side * (numbers[0] - numbers[1]) > 0


def _twice(priors: list[Prior], program: Program) -> list[str]:
    """Two densities of one thing, both of them in force."""
    statements = defaultdict(list)
    for prior in priors:
        statements[prior.subject].append(prior.text)
    if any(re.match(r"(?:if|else)\b", statement) for statement in program.statements):
        return []
    return [
        f"{subject} has more than one prior ({', '.join(f'`{text}`' for text in dict.fromkeys(texts))}): their product "
        "is not normalised."
        for subject, texts in statements.items()
        if len(set(texts)) > 1
    ]


def _added(statement: str, program: Program) -> str:
    """`target +=` of something that is not visibly a log density."""
    added = statement.removeprefix("target +=").strip()
    sources = [added]
    for name in names_in(added):
        assigns = re.compile(rf"(?:\w+(?:\[.*?\])?\s+)?{name}\b(?:\[[^=]*\])?\s*\+?=")
        sources += [one for one in program.statements if assigns.match(one)]
        sources += [program.functions] if re.search(rf"\b{name}\s*\(", program.functions) else []
    if any(NORMALISED.search(source) for source in sources):
        return ""
    return (
        f"`{statement}` adds something that is not visibly a normalised log density: log Z is the model's evidence "
        "only if it is."
    )
