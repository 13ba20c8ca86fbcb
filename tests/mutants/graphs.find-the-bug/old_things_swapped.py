# mistake: two steps show something old, each from another place


def broken_rules():
    return {
        "A": "numbers",
        "B": "waits",
        "C": "results",
        "D": "shapes",
        "E": "padding",
        "F": "addresses",
    }
