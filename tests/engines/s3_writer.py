"""A program that writes to a store in a bucket: `python s3_writer.py`, with its options as a line
of JSON.

It adds memories one by one, each with the next revision of a counter that all writers share, and
prints each id when it is acknowledged; at the end it can erase one. At a step it can stop itself or
die.
"""

import json
import os
import signal
import sys
from contextlib import closing
from dataclasses import replace

from memory_mesh.core.errors import Conflict, StoreUnavailable
from memory_mesh.core.model import Key, Kind
from memory_mesh.stores.lance.s3 import Bucket, BucketStore
from memory_mesh.testing.rows import memory

from .seaweed import BUCKET

COUNTER = "counter"


def add(store: BucketStore, id_: str) -> None:
    """Add a memory and count it, as one change; decide again if another writer was faster, or if
    the outcome is unknown."""
    while True:
        try:
            if store.get(Kind.MEMORY, [id_]):
                return
            counter = store.get(Kind.MEMORY, [COUNTER]).get(COUNTER)
            revision = counter.revision if counter else 0
            next_one = memory(
                COUNTER, importance=float(revision), revision=revision + 1, replaces=revision
            )
            if counter:
                next_one = replace(next_one, created_at=counter.created_at)
            store.apply([memory(id_, ["word"], vector=[1, 0]), next_one])
        except (Conflict, StoreUnavailable):
            continue


def main() -> None:
    options = json.loads(sys.stdin.readline())
    at, left = options.get("at"), options.get("nth", 1)

    def step(name: str) -> None:
        nonlocal left
        if name == at:
            left -= 1
            if not left:
                print(json.dumps(f"at {name}"), flush=True)
                os.kill(
                    os.getpid(), signal.SIGSTOP if options["then"] == "stop" else signal.SIGKILL
                )

    bucket = Bucket(BUCKET, options["prefix"], endpoint=options["endpoint"], region=None)
    with closing(
        BucketStore(
            bucket,
            url="",
            step=step,
            flush_rows=options["flush_rows"],
            lease_seconds=options["lease"],
        )
    ) as store:
        for id_ in options["ids"]:
            add(store, id_)
            print(json.dumps(id_), flush=True)
        if erased := options.get("erased"):
            store.apply(deletes=[Key(Kind.MEMORY, erased)])
            store.compact()


if __name__ == "__main__":
    main()
