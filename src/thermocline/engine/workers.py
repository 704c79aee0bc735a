"""Workers: the processes of dask.distributed that compute blocks and rows, on this machine or on many.

What travels is a task: a pure function of arrays, in three pieces. *Code* is a PyTree's structure, with the user's
functions in it; *held* are the data and bases of a block (`Paths`) or of the evaluator (`Target`), the same for many
tasks; the rest is what changes, but for large arrays among it that were in a task before, as a block's tuning is while
it samples. Code and held pieces are results of tasks themselves: they go to the scheduler once, to a worker when it
first needs them, and are made again when a worker that had them is lost.
"""

import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from hashlib import blake2b, sha256
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from thermocline.engine.batch import Batch, Paths
from thermocline.engine.program import of_all_chains
from thermocline.engine.tasks import Held, check_versions, compute, own_versions, plain, precision, versions
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.optional import require
from thermocline.support.precision import computing_in
from thermocline.support.runner import Runner, in_process
from thermocline.target import Target

CHAINS_A_BLOCK = 4  # of a single target; for any number of workers the same, because width changes rounding
MOST_DEATHS = 20  # of workers, from which the block that they were computing is held to be the cause
LARGE, MOST_PIECES = 2**14, 512  # bytes of an array that is looked for among what was sent, and how many are known
BLOCKS_A_WORKER = 2  # under way at a time, so that none waits for the coordinator
AHEAD = 16  # times as many are handed in before the first is waited for
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
XLA_THREADS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
LOST = "the connection to the workers was lost ({}). With `checkpoint=` the same call goes on, with or without them."


class Workers:
    """A runner whose items are computed by the workers of a client; a single target's chains are shared out."""

    def __init__(self, client: Any) -> None:
        self.client, self.lock, self.is_stopped = client, Lock(), False
        self.codes: dict[Any, Any] = {}
        self.held: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self.pieces: OrderedDict[bytes, Any] = OrderedDict()  # by hash: None for an array that has been sent once

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        under_way: deque[list[Any]] = deque()
        with self._reached():
            for item in items:
                under_way.append([self._submitted(function, part) for part in by_chains(item)])
                if len(under_way) >= AHEAD * self.num_at_once:  # of very many, not all at the same time
                    yield self._whole(under_way.popleft())
            while under_way:
                yield self._whole(under_way.popleft())

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """A sentence where the scheduler is gone; nobody asks it for anything again."""
        from distributed.client import ClosedClientError

        try:
            yield
        except (CancelledError, OSError, ClosedClientError) as error:
            self.is_stopped = True
            raise ThermoclineError(LOST.format(type(error).__name__)) from error

    @property
    def num_at_once(self) -> int:
        """Blocks that keep all workers busy."""
        return BLOCKS_A_WORKER * max(sum(self.client.nthreads().values()), 1)

    def _submitted(self, function: Callable[[Any], Any], item: Any) -> Any:
        if self.is_stopped:
            raise CancelledError
        leaves, structure = jax.tree.flatten((function, item), is_leaf=lambda node: isinstance(node, Paths | Target))
        known = {i: self._known(leaf) for i, leaf in enumerate(leaves)}
        held = {i: piece for i, piece in known.items() if piece is not None}
        rest = _packed([None if i in held else plain(leaf) for i, leaf in enumerate(leaves)])
        shared = self._code(structure), list(held), list(held.values())
        return self.client.submit(compute, *shared, rest, precision(), versions(), pure=False)

    def _known(self, leaf: Any) -> Any:
        """What stands on the workers for a leaf; None where it has to travel."""
        if isinstance(leaf, Paths | Target):
            return self._held(leaf)
        if not (isinstance(leaf, np.ndarray | jax.Array) and leaf.nbytes >= LARGE):
            return None
        array = np.ascontiguousarray(leaf)
        key = blake2b(array.data, key=f"{array.shape}{array.dtype}".encode()[:64]).digest()
        with self.lock:
            if key in self.pieces and self.pieces[key] is None:
                self.pieces[key] = self._sent(Held, self._code(jax.tree.structure(0)), _packed([array]))
            piece = self.pieces.setdefault(key, None)
            self.pieces.move_to_end(key)
            while len(self.pieces) > MOST_PIECES:
                self.pieces.popitem(last=False)
        return piece

    def _held(self, tree: Any) -> Any:
        """The arrays of a tree on the workers, once for as long as the tree lives."""
        with self.lock:
            if tree not in self.held:
                leaves, structure = jax.tree.flatten(tree)
                self.held[tree] = self._sent(Held, self._code(structure), _packed(list(map(plain, leaves))))
            return self.held[tree]

    def _code(self, structure: Any) -> Any:
        if structure not in self.codes:
            skeleton = jax.tree.unflatten(structure, ["leaf"] * structure.num_leaves)  # which no constructor checks
            self.codes[structure] = self._sent(bytes, _packed(skeleton))
        return self.codes[structure]

    def _sent(self, made: Callable[..., Any], *given: Any) -> Any:
        """By the hash of what it is, so that the same is not sent twice."""
        known = [part if isinstance(part, bytes) else part.key.encode() for part in given]
        key = f"thermocline-{made.__name__}-{sha256(b''.join(known)).hexdigest()}"
        from dask import config

        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.submit(made, *given, key=key)

    def _whole(self, tasks: list[Any]) -> Any:
        parts = [self._result(task) for task in tasks]
        return parts[0] if len(parts) == 1 else of_all_chains(parts)

    def _result(self, task: Any) -> Any:
        from distributed import KilledWorker

        try:
            return task.result()
        except KilledWorker as error:
            raise ThermoclineError(
                f"workers died again and again while they computed the same block ({error}); is their memory enough?"
            ) from error


def by_chains(item: Any) -> list[Any]:
    """The block of a single target in parts of a few chains; anything else as it is."""
    if not (isinstance(item, Batch) and item.paths.is_single):
        return [item]
    parts = np.array_split(np.arange(len(item.chains)), -(-len(item.chains) // CHAINS_A_BLOCK))
    return [_some_chains(item, slice(part[0], part[-1] + 1)) for part in parts]


def _some_chains(block: Batch, some: slice) -> Batch:
    starts, states = jax.tree.map(lambda leaf: np.asarray(leaf)[:, some], (block.starts, block.states))
    return replace(block, chains=block.chains[some], starts=starts, states=states)


def _packed(tree: Any) -> bytes:
    import cloudpickle

    try:
        return cloudpickle.dumps(tree)
    except Exception as error:
        raise ThermoclineError(
            f"the target cannot be sent to workers: {type(error).__name__}: {error}. Its functions must hold nothing "
            "but what can be pickled; open files and compiled objects in them, not before."
        ) from error


def mapped(runner: Runner, function: Callable[[Any], Any], items: list[Any], blocks_each: int) -> Iterator[Any]:
    """A walk of each item, in order; several at a time where there are workers, whom each waits for mostly."""
    if not isinstance(runner, Workers):
        yield from map(function, items)
        return
    in_force = precision()

    def walk(item: Any) -> Any:
        with computing_in(in_force):  # which belongs to a thread
            return function(item)

    pool = ThreadPoolExecutor(1 + runner.num_at_once // blocks_each)
    walks: list[Future[Any]] = [pool.submit(walk, item) for item in items]
    try:
        for under_way in walks:
            yield under_way.result()
    except BaseException:  # an interrupt, say: those under way end at their next block
        runner.is_stopped = True
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Own(NamedTuple):
    """A number of processes on this machine."""

    number: int

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Closed, with its processes, when the body ends."""
        from dask import config
        from distributed import Client, LocalCluster

        flags = f"{os.environ.get('XLA_FLAGS', '')} {XLA_THREADS}".strip()
        settings = {
            "distributed.scheduler.allowed-failures": MOST_DEATHS,
            "distributed.nanny.pre-spawn-environ": THREADS | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        }
        options: dict[str, Any] = {
            "n_workers": self.number, "threads_per_worker": 1, "processes": True, "memory_limit": 0,
            "dashboard_address": "127.0.0.1:0", "silence_logs": 60,
        }  # fmt: skip
        with config.set(settings):
            try:
                cluster = LocalCluster(**options)
            except RuntimeError as error:  # so Dask and multiprocessing say it
                raise ThermoclineError(
                    f"{self.number} workers could not be started: each reads the script again, so that a call with "
                    '`workers=` must stand under `if __name__ == "__main__":`.'
                ) from error
            with cluster, Client(cluster) as client:
                yield client


@contextmanager
def on_workers(workers: Any) -> Iterator[Runner]:
    """The runner of a call: a number of processes here, a scheduler's address, a client, a runner; None: in process."""
    if workers is None or isinstance(workers, Workers):
        yield in_process if workers is None else workers
        return
    client_class = require("dask", "distributed", "cloudpickle").Client
    with ExitStack() as stack:
        client: Any = workers
        if isinstance(workers, str):
            try:
                client = stack.enter_context(client_class(workers))
            except (OSError, ValueError) as error:
                raise ThermoclineError(f"no scheduler answers at {workers} ({error}); is it running?") from error
        elif isinstance(workers, int | np.integer) and not isinstance(workers, bool) and workers >= 1:
            client = stack.enter_context(Own(int(workers)).client())
        elif not isinstance(workers, client_class):
            raise ThermoclineError(
                f"workers is {brief(workers)}; give a number of processes, a dask.distributed Client, or its address."
            )
        there = client.run(own_versions(), on_error="ignore")  # one may die just then; a task checks its worker anyway
        check_versions(there, versions())
        yield Workers(client)
