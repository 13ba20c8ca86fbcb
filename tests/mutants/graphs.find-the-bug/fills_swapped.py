# mistake: two steps fill their rows unlike the others, each in its own way


def broken_rules():
    return {
        "A": "numbers",
        "B": "waits",
        "C": "addresses",
        "D": "shapes",
        "E": "results",
        "F": "padding",
    }
