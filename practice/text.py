"""Exercises of chapter 06b: from tokens to text, and from text to a stream.

Write between the two marks of an exercise; helpers of your own may stand there too. Everything else
in this file stays as it is. All of it belongs to the front end: import no torch. Grade with

    python practice/judge.py text.detokenizer
    python practice/judge.py text.stop-checker
    python practice/judge.py text.sse
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mini_engine.interfaces import ExerciseNotStarted

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # decoding shows it where bytes are no whole character

# --- text.detokenizer: edit from here ---


class IncrementalDetokenizer:
    """Turns one request's tokens into text as they come, and never splits a character.

    The tokenizer is the model's own. You need three things of it:
        decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                                    the text of these ids; special tokens and ids that the
                                    vocabulary doesn't have give no text
        convert_ids_to_tokens(id)   how the vocabulary spells an id; None if it doesn't have it
        all_special_ids             the ids of end of sequence and the like

    What comes out, joined, is what the output adds to the prompt: decode(prompt + output) without
    decode(prompt) in front of it. The prompt matters because many tokenizers drop the first space
    of a text. If it ends inside a character, that character belongs to the output.

    A character may be spread over several tokens. Text goes out when it is certain:
        Decoded text that ends in REPLACEMENT may end inside a character. Hold the token back, or
        the part of its text that is not certain, until later tokens complete it. Only the last
        REPLACEMENT is uncertain, and it stands for at most three bytes. (It may also be an invalid
        byte, or a U+FFFD that the model wrote; holding it is right all the same.)
        A token spelled like <0xE4> is one byte of a SentencePiece tokenizer. Such a tokenizer
        decodes a run of them as a whole: a wrong byte at its end spoils all of it. Hold the run
        back until a token of another kind ends it.
        Nothing else is held back: text that no later token can change goes out at once.

    Cost: the tokens decoded for each new one must not grow with the output. Decoding everything
    again and again is too slow: keep a few tokens, not all of them, also where hundreds of bytes
    in a row are invalid.

    Every request has its own detokenizer. Change neither the prompt's list nor that of `add`.
    """

    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        """Begin an output behind these tokens, of which there may be thousands, or none."""
        raise ExerciseNotStarted("IncrementalDetokenizer.__init__")

    @property
    def pending(self) -> bool:
        """Whether text of the tokens so far is held back.

        The engine asks after each `add`: it shows a client no token whose text is not out.
        """
        raise ExerciseNotStarted("IncrementalDetokenizer.pending")

    def add(self, token_ids: Iterable[int]) -> str:
        """The text that these tokens complete; may be empty. Nearly always it is one token."""
        raise ExerciseNotStarted("IncrementalDetokenizer.add")

    def finish(self) -> str:
        """The output has ended: what was held back, as `decode` shows it. Called once."""
        raise ExerciseNotStarted("IncrementalDetokenizer.finish")


# --- end of text.detokenizer ---

# --- text.stop-checker: edit from here ---


class StopChecker:
    """Looks for stop strings in one request's text as it comes, and shows no part of them.

    stops    one or more strings, none of them empty
    include  whether the stop string itself is shown

    Text comes in pieces that know nothing of stop strings: one may lie across several pieces, begin
    in the middle of one and end in the middle of another.

    Of several stop strings the one that is complete first counts, whatever their order: its last
    character comes first. Of those that are complete with the same character, the longest.

    What could still become a stop string is held back: an end of the text with which a stop string
    begins. More is never needed. (You may hold back as many characters as the longest stop string
    has, less one; then a client sees them later than it could.) With include=True nothing needs to
    be held back, because all of it will be shown.

    matched  None, or the stop string that the text has completed
    """

    matched: str | None

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        """Start at the beginning of an output. Doesn't change `stops`."""
        raise ExerciseNotStarted("StopChecker.__init__")

    def add(self, text: str) -> str:
        """The text that may be shown now; may be empty, as `text` may.

        If a stop string is complete, sets `matched` and returns what comes before it (with include,
        up to its end) and was not shown yet. What follows it is never shown. Not called again then.
        """
        raise ExerciseNotStarted("StopChecker.add")

    def finish(self) -> str:
        """The output ended without a stop string: what was held back. Called once."""
        raise ExerciseNotStarted("StopChecker.finish")


# --- end of text.stop-checker ---

# --- text.sse: edit from here ---


def chat_events(
    outputs: Generator[tuple[str, str | None]],
    envelope: Mapping[str, Any],
    usage: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """A chat answer as OpenAI's clients read it: server-sent events, each one string.

    outputs   (new text, finish reason) of one request, as the engine makes them; the reason is None
              except in the last. Asking for the next may wait for a step of the engine, so each
              event is yielded before the next output is asked for
    envelope  what every chunk holds: id, object, created, model
    usage     the token counts, if the client asked for them

    An event is "data: ", some JSON on one line, and an empty line: 'data: {"id": ...}\\n\\n'.
    A chunk is the envelope and "choices": [{"index": 0, "delta": ..., "finish_reason": ...}].
        1. first of all a chunk with the delta {"role": "assistant", "content": ""}, reason None,
           before any output is asked for: the server looked at the first output before it called
           chat_events, and an error there became a status, so the role may be sent at once
        2. for every output a chunk with the delta {"content": text}, or {} if the text is empty;
           an output with neither text nor reason gives no event
        3. if there is a usage, a chunk with the usage as "usage" and [] as "choices"
        4. 'data: [DONE]\\n\\n'
    Clients know the reasons "stop" and "length": "capacity" is sent as "length", "abort" as None.

    If asking for an output raises an Exception, the status 200 has been sent long ago. An event
        {"error": {"message": str(error), "type": "server_error", "param": None, "code": 500}}
    takes the place of what is left, and 'data: [DONE]\\n\\n' follows.

    If the client goes away, the server closes this generator where it stands. It then yields
    nothing more and closes `outputs`, which aborts the request. Every other way ends with
    `outputs` closed, too.
    """
    raise ExerciseNotStarted("chat_events")


def read_events(pieces: Iterable[bytes]) -> Iterator[Any]:
    """The other end: the JSON of every event, from bytes as they come off the network.

    Pieces know nothing of events: one may end inside an event, a line or a character, and one may
    hold several events. Each event is yielded before the next piece is asked for.

    Lines end in \\n or \\r\\n. An empty line ends an event. Of its lines those that begin with
    "data:" count; one space behind the colon is no part of the data, and several are joined with
    \\n. All other lines are ignored (":" begins a comment, which servers send to keep a connection
    open), and so is an event without data. The event [DONE] ends the stream: nothing behind it is
    read.

    Raises ConnectionError if the pieces end before [DONE]: then the answer is not complete.
    """
    raise ExerciseNotStarted("read_events")


# --- end of text.sse ---
