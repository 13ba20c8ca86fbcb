# mistake: no step of the script has more than four requests


def broken_rules():
    return {
        "A": "numbers",
        "B": "waits",
        "C": "largest",
        "D": "shapes",
        "E": "results",
        "F": "addresses",
    }
