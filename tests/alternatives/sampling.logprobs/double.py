"""In float64, with lists."""

from mini_engine.interfaces import TokenLogprobs


def token_logprobs(logits, token_ids, counts):
    table = logits.double().log_softmax(-1)
    out = []
    for row, token, count in zip(table.tolist(), token_ids, counts, strict=True):
        order = sorted(range(len(row)), key=lambda i: -row[i])
        top = [[i, row[i]] for i in order[:count]]
        out.append(TokenLogprobs(token, row[token], 1 + sum(v > row[token] for v in row), top))
    return out
