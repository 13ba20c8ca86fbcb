# mistake: none


def broken_rules():
    return {
        "A": "warm-up",
        "B": "waits",
        "C": "padding",
        "D": "shapes",
        "E": "results",
        "F": "addresses",
    }
