import numpy as np

from benchmarks.scaling import Model, fitted


def measured(workers, targets, worker=0.2, coordinator=0.01):
    spent = {"cpu_workers": worker * targets, "cpu_coordinator": coordinator * targets}
    return {"what": "many", "workers": workers, "targets": targets, **spent}


def test_the_model_finds_what_a_target_takes():
    lines = [measured(1, 100), measured(2, 100), measured(4, 300)]
    lines += [{"what": "travel", "targets": 100, "tasks": 60}, {"what": "simulated", "tasks": 200, "elapsed": 5.0}]
    assert np.allclose(fitted(lines), (0.2, 0.01, 0.6, 40.0))


def test_the_slowest_of_three_decides():
    model = Model(worker=0.2, coordinator=0.01, tasks=0.6, rate=40.0)
    assert np.isclose(model.elapsed(1000, 2), 100)  # workers
    assert np.isclose(model.elapsed(1000, 16), 15)  # the scheduler
    assert np.isclose(model._replace(coordinator=0.02).elapsed(1000, 16), 20)
