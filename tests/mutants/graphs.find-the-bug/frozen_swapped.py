# mistake: two steps answer as at capture, each for a reason of its own


def broken_rules():
    return {
        "A": "addresses",
        "B": "waits",
        "C": "padding",
        "D": "shapes",
        "E": "results",
        "F": "numbers",
    }
