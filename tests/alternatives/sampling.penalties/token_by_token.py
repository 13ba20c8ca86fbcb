"""Plain Python over the tokens that occurred."""

from collections import Counter


def apply_penalties(logits, prompts, outputs, repetition, frequency, presence):
    out = logits.clone()
    for row in range(len(logits)):
        r, f, p = float(repetition[row]), float(frequency[row]), float(presence[row])
        given = Counter(outputs[row])
        for token in {*prompts[row], *given}:
            value = float(out[row, token])
            value = value / r if value > 0 else value * r
            if token in given:
                value -= f * given[token] + p
            out[row, token] = value
    return out
