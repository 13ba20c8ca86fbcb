"""The sizes of captured batches: every batch finds one, and none wastes more than is documented."""

from __future__ import annotations

import pytest

from mini_engine.compute.graph_buckets import choose_bucket, graph_buckets


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, (1,)),
        (2, (1, 2)),
        (3, (1, 2, 3)),
        (7, (1, 2, 4, 7)),
        (8, (1, 2, 4, 8)),
        (9, (1, 2, 4, 8, 9)),
        (13, (1, 2, 4, 8, 13)),
        (16, (1, 2, 4, 8, 16)),
        (33, (1, 2, 4, 8, 16, 24, 32, 33)),
    ],
)
def test_sizes(most: int, expected: tuple[int, ...]) -> None:
    assert graph_buckets(most) == expected


@pytest.mark.parametrize("most", [*range(1, 42), 64, 100, 256])
def test_every_batch_has_a_bucket_and_little_padding(most: int) -> None:
    buckets = graph_buckets(most)
    for batch in range(1, most + 1):
        bucket = choose_bucket(buckets, batch)
        assert bucket is not None
        assert bucket == min(size for size in buckets if size >= batch)
        assert bucket - batch < max(batch, 8)
        assert bucket < 2 * batch or batch == 1 == bucket
    assert choose_bucket(buckets, most + 1) is None


@pytest.mark.parametrize("wrong", [0, -1, 2.0, True])
def test_a_wrong_number_of_requests_is_named(wrong: object) -> None:
    with pytest.raises((TypeError, ValueError), match="max_num_seqs"):
        graph_buckets(wrong)  # type: ignore[arg-type]
