# mistake: none
# Asks an iterator whether it is empty: an empty one ends in an IndexError.


def check(token_times):
    if any(b < a for a, b in zip(token_times, token_times[1:], strict=False)):
        raise ValueError(f"times decrease: {token_times}")


def time_to_first_token(arrival, token_times):
    check(token_times)
    if not token_times:
        raise ValueError("no tokens")
    if token_times[0] < arrival:
        raise ValueError("the first token comes before the arrival")
    return token_times[0] - arrival


def inter_token_latencies(token_times):
    check(token_times)
    return [b - a for a, b in zip(token_times, token_times[1:], strict=False)]


def time_per_output_token(token_times):
    gaps = inter_token_latencies(token_times)
    return sum(gaps) / len(gaps) if gaps else None


def percentile(values, q):
    if not values:
        raise ValueError("no values")
    if q < 0 or q > 100:
        raise ValueError("q must lie between 0 and 100")
    ordered = sorted(values)
    position = q / 100 * (len(ordered) - 1)
    low = int(position)
    if low == position:
        return ordered[low]
    return ordered[low] + (ordered[low + 1] - ordered[low]) * (position - low)


def goodput(requests, duration, *, max_ttft, max_tpot):
    if duration <= 0:
        raise ValueError("duration must be above 0")
    good = 0
    for arrival, token_times in requests:
        if not token_times or time_to_first_token(arrival, token_times) > max_ttft:
            continue
        tpot = time_per_output_token(token_times)
        if tpot is None or tpot <= max_tpot:
            good += 1
    return good / duration
