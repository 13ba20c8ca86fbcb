"""Two columns, side by side."""


def broken_rules():
    rules = "numbers waits padding shapes results addresses"
    return dict(zip("ABCDEF", rules.split(), strict=True))
