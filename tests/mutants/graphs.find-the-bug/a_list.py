# mistake: none


def broken_rules():
    return ["numbers", "waits", "padding", "shapes", "results", "addresses"]
