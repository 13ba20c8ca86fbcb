# mistake: none


def broken_rules():
    return {
        "A": "waits",
        "B": "padding",
        "C": "shapes",
        "D": "results",
        "E": "addresses",
        "F": "numbers",
    }
