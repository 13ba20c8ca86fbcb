# mistake: every step was captured after a warm-up


def broken_rules():
    return {
        "A": "numbers",
        "B": "waits",
        "C": "padding",
        "D": "shapes",
        "E": "results",
        "F": "warm-up",
    }
