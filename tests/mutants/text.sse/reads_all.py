# mistake: everything is read before the first event
"""Waits for the end."""

import json


class Framer:
    def __init__(self, envelope):
        self.envelope = envelope

    def line(self, data):
        text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        return "".join(("data: ", text, "\n", "\n"))

    def choice(self, delta, reason):
        known = reason if reason in ("stop", "length") else None
        if reason == "capacity":
            known = "length"
        choice = {"index": 0, "delta": delta, "finish_reason": known}
        return self.line({**self.envelope, "choices": [choice]})


def chat_events(outputs, envelope, usage=None):
    framer = Framer(dict(envelope))
    try:
        try:
            yield framer.choice({"role": "assistant", "content": ""}, None)
            for text, reason in outputs:
                if text == "" and reason is None:
                    continue
                yield framer.choice({"content": text} if text else {}, reason)
            tail = [] if usage is None else [{**envelope, "choices": [], "usage": usage}]
        except Exception as error:
            tail = [{"error": {"message": str(error), "type": "server_error",
                               "param": None, "code": 500}}]  # fmt: skip
        for data in [*tail, "[DONE]"]:
            yield framer.line(data)
    finally:
        outputs.close()


class Reader:
    def __init__(self):
        self.line = bytearray()
        self.data = []
        self.done = False

    def take(self, byte):
        if byte != 10:
            self.line.append(byte)
            return None
        line, self.line = self.line.decode().removesuffix("\r"), bytearray()
        if line:
            if line.startswith("data:"):
                self.data.append(line[6:] if line[5:6] == " " else line[5:])
            return None
        event, self.data = self.data, []
        self.done = event == ["[DONE]"]
        return "\n".join(event) if event and not self.done else None


def read_events(pieces):
    reader = Reader()
    for piece in list(pieces):
        for byte in piece:
            event = reader.take(byte)
            if reader.done:
                return
            if event is not None:
                yield json.loads(event)
    raise ConnectionError
