"""Written down by rule and turned round."""

STEPS = {"waits": "B", "shapes": "D", "addresses": "F", "numbers": "A", "results": "E"}


def broken_rules():
    rules = {step: rule for rule, step in STEPS.items()}
    (left,) = set("ABCDEF") - set(rules)
    return {**rules, left: "padding"}
