"""Files name classes by tags of their own: modules and classes may be renamed, and tags may not."""

import numpy as np

import thermocline as tc
from thermocline.results import storage

TAGS_OF_FORMAT_2 = {
    "base": "gaussian low-rank mixture student-t tied-mixture",
    "control": "logistic",
    "found": "fit modes optima peak students",
    "law": "continuous curve ladder learned neighbours profile schedule window",
    "method": "adiabatic annealed extended gibbs joint parallel sequential transitions untempered",
    "mover": "hmc langevin metric move nuts",
    "record": "axis-labels cost estimate fingerprint mode-table phases run-info search tail-index",
    "state": "ensemble extended gibbs particles point",
    "tuning": "bias control learning",
}


def test_no_tag_that_files_have_is_lost():
    """One that goes makes files unreadable: then the format needs another number."""
    tags = {f"{kind}/{name}" for kind, names in TAGS_OF_FORMAT_2.items() for name in names.split()}
    assert storage.STORABLE.keys() >= tags | {"tuning"}


def test_a_description_has_tags_and_neither_classes_nor_modules():
    method = tc.GibbsTempering(tc.NUTS(max_doublings=3), tc.Continuous())
    arrays: dict[str, np.ndarray] = {}
    described = storage.encode({"method": method, "base": tc.Gaussian(np.zeros(2), np.ones(2))}, arrays)
    written = storage.to_json(described)
    assert {tag for tag in storage.STORABLE if f'"{tag}"' in written} == {
        *("method/gibbs", "mover/nuts", "law/continuous", "base/gaussian")
    }
    assert not any(made.__name__ in written for made in storage.TAGS)
    assert "thermocline" not in written
    back = storage.decode(described, arrays)
    assert back["method"].mover.max_doublings == 3
    np.testing.assert_array_equal(back["base"].scale_tril, np.ones(2))
