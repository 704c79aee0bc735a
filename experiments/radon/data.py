"""The Radon data: 919 houses in 85 counties of Minnesota, as `radon.csv` holds them."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

FILE = Path(__file__).with_name("radon.csv")


class Data(NamedTuple):
    """County of each house, its two regressors (measured on the first floor or not, log uranium) and log radon."""

    county: np.ndarray
    x: np.ndarray
    y: np.ndarray
    num_counties: int


def radon(num_counties: int | None = None) -> Data:
    """All houses, or those of the first `num_counties` counties."""
    with FILE.open() as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(row["county"] for row in rows))
    county = np.array([names.index(row["county"]) for row in rows])
    number = len(names) if num_counties is None else num_counties
    x, y = (np.array([[float(row[name]) for name in columns] for row in rows])
            for columns in (("floor", "log_uranium"), ("log_radon",)))
    kept = county < number
    return Data(county[kept], x[kept], y[kept, 0], number)
