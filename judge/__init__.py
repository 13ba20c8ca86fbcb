"""The judge: grades a learner's parts, in their own process, against the reference.

How to write an exercise
------------------------
1. **Row.** Add an `Exercise` to `judge/exercises/__init__.py`. The id never changes. `symbols` are the
   names that the learner writes in `practice/FILE`; `reference` is a module that holds the same names
   (a module of the engine, or one of `judge/solutions/` for a plain function).
2. **Stub.** In `practice/FILE`: contract, shapes, errors; what may be edited stands between
   `# --- <exercise id>: edit from here ---` and `# --- end of <exercise id> ---`. An unwritten body is
   `raise ExerciseNotStarted("<symbol or method>")` from `mini_engine.interfaces`, nothing else.
3. **Module.** `judge/exercises/<topic>_<name>.py` holds `EXERCISE = Details(checks, hints, mistakes)`.
   - `Check(name, title, execute, cases, compare)`: `cases(rng)` makes `Case(label, payload)`s in the
     judge's process; a payload is plain values and numpy arrays (tensors on the other side; see
     `wire`). `execute` is a string "module:function" of `function(parts, payload, context)` that runs
     both with the learner's parts (child process) and with the reference's, and returns plain values
     or tensors; wrap calls of the learner's code in `judge.execute.attempt`, which turns an exception
     into data. Ready-made: `judge.execute:call_function` with `compare.function_answer`, and
     `judge.execute:call_script` (make an object, drive it with calls, observe its state after each)
     with `compare.script_answer`. Put tensor functions into a module of their own that imports torch:
     the judge's process never imports it. Never put expected values in a payload.
   - `compare(case, expected, got)` returns a `Difference` or None; `compare.array_difference` words
     what is wrong with a tensor. `normalize` first brings legal variety to one form.
   - kind "contract" (must hold) or "policy" (reported apart, fails nothing). `needs`: "torch",
     "cuda", "tiny", "smollm2". `last=True`: runs once all before it passed (checks inside the engine).
   - An engine check uses `judge.engine_checks`; its parts go into `EngineParts(slot=part)`.
4. **Hints.** Three: a question, the invariant, pseudocode. No line of the reference (tested).
5. **Mistakes.** `Mistake(name, parts={symbol: "judge.mistakes.X:name"})`: a wrong implementation. It is named
   only if it gives the learner's very answers in every case of the failing check and no other does.
   `Case.notes["if_timeout"]` names the mistake of code that hangs in that case.
6. **Mutants.** `tests/mutants/<exercise id>/*.py`, at least 8: whole practice files (or just the symbols), first line
   `# mistake: <name>` or `# mistake: none`. **Alternatives**: `tests/alternatives/<exercise id>/*.py`,
   at least 3 that differ for real. `python -m judge.selftest --only <exercise id>` proves all of it.

Cases come from `rng`, seeded by (seed, exercise, check): the same seed repeats them. Randomness from
anywhere else is a bug. Words and tone of the lines in a Difference: short, exact, expected before got.
"""
