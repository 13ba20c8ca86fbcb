# mistake: none


def broken_rules():
    return {
        "A": "waits",
        "B": "waits",
        "C": "waits",
        "D": "waits",
        "E": "waits",
        "F": "waits",
    }
