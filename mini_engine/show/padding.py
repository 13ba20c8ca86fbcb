"""Owns the drawing of what graphs waste: rows of decode steps that are padding up to a bucket."""

from __future__ import annotations

from collections.abc import Sequence

from mini_engine.compute.graph_buckets import choose_bucket
from mini_engine.show.markup import INK, LINE, PAPER, Figure, figure, picture

WIDTH, HEIGHT = 760, 250
LEFT, RIGHT, TOP, BOTTOM = 56, 20, 14, 40
USED, WASTED = "#0072b2", "#e69f00"  # Okabe-Ito; padding is hatched, too


def padding_rows(batch_sizes: Sequence[int], buckets: Sequence[int]) -> int:
    """Rows of padding of all steps together, each in the smallest bucket that holds it.

    Raises ValueError for a step that no bucket holds. `buckets` ascend.
    """
    return sum(bucket - n for n, bucket in zip(batch_sizes, _chosen(batch_sizes, buckets),
                                               strict=True))  # fmt: skip


def padding_map(batch_sizes: Sequence[int], buckets: Sequence[int]) -> Figure:
    """A bar for each decode step: its requests, and above them the padding up to its bucket.

    Raises ValueError if there is no step, or one that no bucket holds. `buckets` ascend.
    """
    if not batch_sizes:
        raise ValueError("a picture of padding needs at least one decode step, got none")
    chosen = _chosen(batch_sizes, buckets)
    wide = (WIDTH - LEFT - RIGHT) / len(batch_sizes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><defs><pattern id="padding" width="6" height="6" '
        f'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" '
        f'fill="{PAPER}"/><rect width="3" height="6" fill="{WASTED}"/></pattern></defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>'
    ]
    for step, (n, bucket) in enumerate(zip(batch_sizes, chosen, strict=True)):
        x, bottom, middle = LEFT + step * wide, _y(0, buckets), _y(n, buckets)
        top = _y(bucket, buckets)
        parts.append(
            f'<rect class="used" x="{x:.1f}" y="{middle:.1f}" width="{wide:.2f}" '
            f'height="{bottom - middle:.1f}" fill="{USED}"/>'
        )
        if bucket > n:
            parts.append(
                f'<rect class="padding" x="{x:.1f}" y="{top:.1f}" width="{wide:.2f}" '
                f'height="{middle - top:.1f}" fill="url(#padding)"/>'
            )
    parts += _frame(buckets)
    sentence = _sentence(batch_sizes, buckets)
    return figure(picture("".join(parts) + "</svg>", sentence, WIDTH), sentence)


def _chosen(batch_sizes: Sequence[int], buckets: Sequence[int]) -> list[int]:
    found = []
    for n in batch_sizes:
        bucket = choose_bucket(buckets, n)
        if bucket is None:
            raise ValueError(
                f"a step of {n} requests fits none of the sizes {list(buckets)}; the last size "
                "must be the most requests that can run together"
            )
        found.append(bucket)
    return found


def _y(rows: int, buckets: Sequence[int]) -> float:
    return HEIGHT - BOTTOM - rows / buckets[-1] * (HEIGHT - TOP - BOTTOM)


def _frame(buckets: Sequence[int]) -> list[str]:
    """A line and a number for each bucket, and what the axes are."""
    parts, last = [], float("inf")
    for bucket in buckets:
        height = _y(bucket, buckets)
        parts.append(
            f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="{LINE}" stroke-width="0.7"/>'
        )
        if last - height >= 12:  # numbers do not lie over each other
            parts.append(
                f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end" fill="{INK}">'
                f"{bucket}</text>"
            )
            last = height
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 24}" text-anchor="middle" '
        f'fill="{INK}">decode steps, in their order</text>'
        f'<text x="14" y="{middle:.0f}" text-anchor="middle" fill="{INK}" '
        f'transform="rotate(-90 14 {middle:.0f})">rows of the graph</text>'
        f'<rect x="{LEFT}" y="{HEIGHT - 14}" width="12" height="10" fill="{USED}"/>'
        f'<text x="{LEFT + 17}" y="{HEIGHT - 5}" fill="{INK}">requests</text>'
        f'<rect x="{LEFT + 85}" y="{HEIGHT - 14}" width="12" height="10" fill="url(#padding)"/>'
        f'<text x="{LEFT + 102}" y="{HEIGHT - 5}" fill="{INK}">padding</text>'
    )
    return parts


def _sentence(batch_sizes: Sequence[int], buckets: Sequence[int]) -> str:
    wasted = padding_rows(batch_sizes, buckets)
    rows = sum(batch_sizes) + wasted
    graphs = "1 graph" if len(buckets) == 1 else f"{len(buckets)} graphs"
    return (
        f"{graphs}, for {', '.join(map(str, buckets))} rows: {len(batch_sizes)} decode steps "
        f"replay {rows} rows, of which {wasted} are padding ({wasted / rows:.0%})."
    )
