"""The judge: grades a learner's parts, in their own process, against the reference.

How to write an exercise
------------------------
1. **Row.** Add an `Exercise` to `judge/exercises/__init__.py`. The id never changes. `symbols` are
   the names that the learner writes in `practice/FILE`; `reference` is a module that holds the same
   names (a module of the engine, or one of `judge/solutions/` for a plain function). A file that
   imports torch holds tensor exercises only: a torch-free exercise must start in a blink.
2. **Stub.** In `practice/FILE`: contract, shapes, errors. What may be edited stands between
   `# --- <exercise id>: edit from here ---` and `# --- end of <exercise id> ---`. An unwritten body
   is `raise ExerciseNotStarted("<symbol or method>")`, from `mini_engine.interfaces`, and no more.
   Exercises that let one class grow name one `region`, which then stands in the marks; each checks
   only what it asks for, so that methods of a later one may be unwritten.
3. **Module.** `judge/exercises/<topic>_<name>.py` holds `EXERCISE = Details(checks, hints,
   mistakes)`, each check a `Check(name, title, execute, cases, compare)`:
   - `cases(rng)` makes `Case(label, payload)`s in the judge's process. A payload is plain values
     and numpy arrays (which arrive as torch tensors), and never holds an expected value.
   - `execute` is the string "module:function" of a `function(parts, payload, context)` that runs
     with the learner's parts in the child and with the reference's elsewhere. It returns plain
     values or tensors. Calls of the learner's code go through `judge.execute.attempt`, which turns
     an exception into data. Ready-made: `judge.execute:call_function` with
     `compare.function_answer`, and `judge.execute:call_script` (make an object, drive it with
     calls, look at its state after each) with `compare.script_answer`. A tensor function stands in
     a module of its own that imports torch; the judge's process imports no torch. A process may
     serve several exercises (`judge.workers`), so an `execute` module keeps no state of one.
   - `compare(case, expected, got)` returns a `Difference` or None; `compare.array_difference`
     words what is wrong with a tensor. `normalize` first brings legal variety to one form.
   - `kind` is "contract" (must hold) or "policy" (reported apart, fails nothing). `needs` holds
     "torch", "cuda", "tiny", "smollm2". `last=True` runs once everything before it passed.
   - Checks inside the engine come from `judge.engine_checks` and run in `judge.engine_run`, with
     `EngineParts(slot=part)`; those of tensor functions come from `judge.tensor_checks`. A part
     without torch runs with the shadow model (`shadow_check`), whose tokens follow from the KV that
     is read; the tiny model's check is `spare` beside it, and `closer` repeats a failure with
     torch. A policy that looks at the same cases as an earlier check has `answers_of`. A check of
     your own gets the same report, second pass and bisection with `look=engine_verdict.look` and
     its `fingerprint`, if its `execute` ends in `engine_watch.run`. A check that needs "smollm2"
     has the model's name in its payload under "model": `--model FOLDER` puts another in its place.
4. **Hints.** Three: a question, the invariant, pseudocode. No line of the reference (tested). An
   exercise of several functions gives each its own three, under `hints_for` and the name of the
   check that fails first without it.
5. **Mistakes.** `Mistake(name, parts={symbol: "judge.mistakes.MODULE:name"})`, a wrong
   implementation; see `judge.diagnosis` for when its name is shown. `Case.notes["if_timeout"]` is
   the name for code that hangs in that case.
6. **Mutants.** `tests/mutants/<exercise id>/*.py`, at least 8, the first line `# mistake: NAME` or
   `# mistake: none`. **Alternatives.** `tests/alternatives/<exercise id>/*.py`, at least 3 that
   really differ; in tests/alternatives/<region>/ they serve all exercises of a region. Each is a
   whole file for `practice/`, or just the symbols of the exercise.
   `python -m judge.selftest --only <exercise id>` proves that all of it holds.

Cases come from `rng`, seeded by (seed, exercise, check), so that the same seed repeats them.
Randomness from anywhere else is a bug. Lines of a Difference: short, exact, expected before got.
"""
