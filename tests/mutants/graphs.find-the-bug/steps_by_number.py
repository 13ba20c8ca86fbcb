# mistake: none


def broken_rules():
    rules = ["numbers", "waits", "padding", "shapes", "results", "addresses"]
    return dict(enumerate(rules))
