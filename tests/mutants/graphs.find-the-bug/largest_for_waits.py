# mistake: none


def broken_rules():
    return {
        "A": "numbers",
        "B": "largest",
        "C": "padding",
        "D": "shapes",
        "E": "results",
        "F": "addresses",
    }
