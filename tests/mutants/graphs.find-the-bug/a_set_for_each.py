# mistake: none


def broken_rules():
    rules = ("waits", "shapes", "addresses", "numbers", "results", "padding")
    return {step: set(rules) for step in "ABCDEF"}
