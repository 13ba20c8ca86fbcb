# mistake: [DONE] is taken for JSON
"""Forgets the one event that is no JSON."""

import codecs
import contextlib
import json
import re


def told(outputs, envelope, usage):
    yield {"delta": {"role": "assistant", "content": ""}}, None
    for text, reason in outputs:
        if text:
            yield {"delta": {"content": text}}, reason
        elif reason:
            yield {"delta": {}}, reason


def chat_events(outputs, envelope, usage=None):
    with contextlib.ExitStack() as stack:
        stack.callback(outputs.close)
        inner = told(outputs, envelope, usage)
        failed = None
        while True:
            try:
                choice, reason = next(inner)
            except StopIteration:
                break
            except Exception as error:
                failed = str(error)
                break
            reason = "length" if reason == "capacity" else None if reason == "abort" else reason
            choices = [{"index": 0, **choice, "finish_reason": reason}]
            yield f"data: {json.dumps({**envelope, 'choices': choices}, indent=None)}\n\n"
        last = []
        if failed is not None:
            fields = {"message": failed, "type": "server_error", "param": None, "code": 500}
            last.append({"error": fields})
        elif usage is not None:
            last.append({**envelope, "choices": [], "usage": {**usage}})
        for data in last:
            yield f"data: {json.dumps(data, sort_keys=True)}\n\n"
        yield "data: [DONE]\n\n"


def read_events(pieces):
    decoder = codecs.getincrementaldecoder("utf-8")()
    text = ""
    for piece in pieces:
        text += decoder.decode(piece)
        while True:
            end = re.search(r"(?:^|\r?\n)\r?\n", text)
            if end is None:
                break
            block, text = text[: end.start()], text[end.end() :]
            lines = re.split(r"\r?\n", block)
            data = [re.sub("^data: ?", "", line) for line in lines if line.startswith("data:")]
            if data:
                yield json.loads("\n".join(data))
    raise ConnectionError(f"{len(text)} characters are left")
