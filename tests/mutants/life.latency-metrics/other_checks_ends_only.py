# mistake: none
# Compares first and last time only: a dip in the middle passes.


def check(token_times):
    if token_times and token_times[-1] < token_times[0]:
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
    ordered = sorted(values)
    if not ordered or not 0 <= q <= 100:
        raise ValueError("needs values, and q from 0 to 100")
    position = q / 100 * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


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
