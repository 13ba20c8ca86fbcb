# mistake: both refused steps ask for numbers, and one of them asks how many there are


def broken_rules():
    return {
        "A": "numbers",
        "B": "shapes",
        "C": "padding",
        "D": "waits",
        "E": "results",
        "F": "addresses",
    }
