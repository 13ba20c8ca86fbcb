"""By the moment in which each step goes wrong, last step first."""


def broken_rules():
    rules = {}
    for moment, found in (
        ("capture", {"D": "shapes", "B": "waits"}),
        ("filling", {"F": "addresses", "C": "padding"}),
        ("Python ran once", {"A": "numbers"}),
        ("afterwards", {"E": "results"}),
    ):
        assert moment
        rules.update(found)
    return rules
