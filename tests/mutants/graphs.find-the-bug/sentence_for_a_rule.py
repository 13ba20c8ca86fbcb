# mistake: none


def broken_rules():
    return {
        "A": "numbers",
        "B": "waits",
        "C": "padding",
        "D": "shapes",
        "E": "results are overwritten",
        "F": "addresses",
    }
