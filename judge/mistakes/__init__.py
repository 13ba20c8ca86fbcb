"""Known mistakes, as wrong implementations that the judge compares a learner's answers with."""
