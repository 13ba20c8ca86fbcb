# mistake: usage comes with an empty choice
"""Clients index choices[0] of it."""

import json


def chat_events(outputs, envelope, usage=None):
    def event(**more):
        return "data: " + json.dumps(dict(envelope, **more)) + "\n\n"

    def chunk(delta, reason=None):
        reason = {"capacity": "length", "abort": None}.get(reason, reason)
        return event(choices=[{"index": 0, "delta": delta, "finish_reason": reason}])

    try:
        yield chunk({"role": "assistant", "content": ""})
        while True:
            try:
                text, reason = next(outputs)
            except StopIteration:
                break
            except Exception as problem:
                error = {"message": f"{problem}", "type": "server_error", "param": None}
                yield "data: " + json.dumps({"error": {**error, "code": 500}}) + "\n\n"
                usage = None
                break
            if (text, reason) != ("", None):
                yield chunk({"content": text} if text else {}, reason)
        if usage is not None:
            yield event(choices=[{"index": 0, "delta": {}, "finish_reason": None}], usage=usage)
        yield "data: [DONE]\n\n"
    finally:
        outputs.close()


def read_events(pieces):
    buffer, found = bytearray(), []
    for piece in pieces:
        buffer += piece
        while (place := buffer.find(b"\n")) >= 0:
            line = bytes(buffer[:place]).rstrip(b"\r")
            del buffer[: place + 1]
            if line[:5] == b"data:":
                found.append(line[6:] if line[5:6] == b" " else line[5:])
            if line == b"" and found:
                data = b"\n".join(found)
                found.clear()
                if data == b"[DONE]":
                    return
                yield json.loads(data)
    raise ConnectionError("no [DONE]")
