"""Exercises of chapter 06: from the scores of a step to its tokens.

Write between the two marks of an exercise; helpers of your own may stand there too. Everything else
in this file stays as it is. Grade with

    python practice/judge.py sampling.filter
    python practice/judge.py sampling.sample
    python practice/judge.py sampling.penalties
    python practice/judge.py sampling.logprobs
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.control.request import Request
from mini_engine.interfaces import ExerciseNotStarted, TokenLogprobs

__all__ = ["TokenLogprobs", "draw_keys", "gumbel", "torch"]

# --- sampling.filter: edit from here ---


def filter_logits(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    """What is left of each row's logits after temperature, min-p, top-k and top-p.

    Arguments: every row is another request's, and has its own numbers
        logits       [n, vocab_size], float32; some may be -inf, never a whole row
        temperature  [n], float32, above 0
        min_p        [n], float32, 0 to 1; 0 is off
        top_k        [n], int64; 0 and -1 are off, and so is vocab_size or more
        top_p        [n], float32, above 0 up to 1; 1 is off

    In this order, row by row:
        1. the logits are divided by the temperature
        2. min-p drops every token whose probability is below min_p times that of the best token
        3. top-k keeps the top_k best tokens
        4. top-p keeps the fewest best tokens whose probabilities, as shares of what min-p and top-k
           have left, sum to top_p or more: the token that crosses top_p is kept, too
    Probabilities are the softmax of the logits after step 1. The best token always survives. Which
    of several equal logits at a border are kept is up to you.

    Example: logits [2, 1, 0, -1], so probabilities .644 .237 .087 .032. With top_p .8 the tokens 0
    and 1 are left; with .6 only token 0. With top_k 2 and top_p .7 only token 0, since of the two
    that top-k leaves it has .731.

    Returns a new float32 tensor of the logits' shape: the divided logit where a token is kept, -inf
    where it is dropped. A number added to all of a row changes no draw and is allowed: subtract the
    best of each row before you divide, and temperatures as small as 1e-37 overflow nothing. No
    argument is changed.
    """
    raise ExerciseNotStarted("filter_logits")


# --- end of sampling.filter ---

# --- sampling.sample: edit from here ---


def sample(logits: Tensor, requests: Sequence[Request]) -> list[int]:
    """The next token of each row: the best one of a greedy request, a draw for any other.

    logits is [n, vocab_size], float32; row i belongs to requests[i]. Bias and penalties are in the
    logits already. What a request offers:
        request.params.greedy       whether its temperature is 0
        request.params.temperature, .min_p, .top_k, .top_p  as in sampling.filter
    Everything else of it (its seed, its choice, its output number) is read by draw_keys, below.

    A greedy row takes the token with the largest logit; of equal ones that with the lowest id. It
    is filtered by nothing. Any other row is drawn with Gumbel noise: filter its logits with your
    filter_logits, add to each token's logit the noise of that token, and take the token with the
    largest sum. Two functions give the noise:
        draw_keys(requests, device)  int32 [k, 2]: keys of k requests, for their next output each
        gumbel(keys, token_ids)      float32 [k, m]: the noise of the tokens token_ids, an int64
                                     tensor [k, m] or, for all rows alike, [1, m]
    The noise is looked up, not drawn: the same key and the same token id give the same number, in
    every batch. So the token of a row must not depend on the other rows, on their number, or on how
    often this function was called before.

    Returns a list of n ints, [] if there are no rows. No argument is changed.
    You may call your own filter_logits, or, while that is a stub, the reference's: `from
    mini_engine.compute.plain_sampler import filter_logits`, inside this function.
    """
    raise ExerciseNotStarted("sample")


# --- end of sampling.sample ---

# --- sampling.penalties: edit from here ---


def apply_penalties(
    logits: Tensor,
    prompts: Sequence[Sequence[int]],
    outputs: Sequence[Sequence[int]],
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
) -> Tensor:
    """The logits after the three penalties for tokens that were used already.

    Arguments: every row is another request's
        logits      [n, vocab_size], float32; some may be -inf
        prompts     the prompt of each row: n lists of token ids, of any length
        outputs     what each row has generated so far: n lists of token ids, some maybe empty
        repetition  [n], float32, above 0; 1 is off
        frequency   [n], float32, may be negative; 0 is off
        presence    [n], float32, may be negative; 0 is off

    In this order, row by row:
        1. of every token in the row's prompt or output, however often: a positive logit is divided
           by repetition, any other is multiplied by it
        2. of every token in the row's output: frequency times the number of its occurrences there
           is subtracted
        3. of every token in the row's output: presence is subtracted, once
    Frequency and presence look at the output alone; tokens of the prompt count for nothing there.

    Example: logits [2, 1, 0, -1], the prompt holds 3, the output 0 three times. With repetition 2:
    [1, 1, 0, -2]. With presence .5 only: [1.5, 1, 0, -1]; with frequency .5 only: [.5, 1, 0, -1].

    Returns a new float32 tensor of the logits' shape. No argument is changed.
    """
    raise ExerciseNotStarted("apply_penalties")


# --- end of sampling.penalties ---

# --- sampling.logprobs: edit from here ---


def token_logprobs(
    logits: Tensor, token_ids: Sequence[int], counts: Sequence[int]
) -> list[TokenLogprobs]:
    """How likely the chosen token of each row was, and what else was likely.

    logits is [n, vocab_size] of any float dtype, as the model gave them: before penalties,
    temperature and filters. token_ids are the tokens that were chosen, counts says how many of the
    best tokens a row wants to see; both are lists of n ints.

    Returns a list of n TokenLogprobs(token_id, logprob, rank, top):
        token_id  the chosen token
        logprob   the logarithm of its probability, a float; the softmax is computed in float32
        rank      1 + how many tokens of the row have a larger logit, an int
        top       the row's best tokens, best first, as a tuple of (token id, logprob): `count` of
                  them, or all if the vocabulary is smaller. The chosen token has no special part
                  in it. Which of several equal logits comes first is up to you.

    Example: logits [[2, 1, 0, -1]], token_ids [3], counts [2]:
        [TokenLogprobs(3, -3.4402, 4, ((0, -0.4402), (1, -1.4402)))]

    Ints and floats are Python's own: they go to clients as JSON. No argument is changed. Logits of
    100 or -100 are nothing unusual, and their exp is no float32.
    """
    raise ExerciseNotStarted("token_logprobs")


# --- end of sampling.logprobs ---
