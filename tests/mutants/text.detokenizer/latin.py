# mistake: none
"""Every byte is a character."""

import codecs
from collections import deque


def byte_table():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    table = {chr(byte): byte for byte in plain}
    table.update({chr(256 + place): byte for place, byte in enumerate(rest)})
    return table


class ByBytes:
    table = byte_table()

    def __init__(self):
        self.decoder = codecs.getincrementaldecoder("latin-1")("replace")

    def waits(self):
        return bool(self.decoder.getstate()[0])

    def feed(self, token, spelled):
        if all(letter in self.table for letter in spelled):
            raw = bytes([self.table[letter] for letter in spelled])
        else:
            raw = spelled.encode()
        return self.decoder.decode(raw)

    def rest(self):
        return self.decoder.decode(b"", True)


class ByWindow:
    def __init__(self, decode):
        self.decode = decode
        self.known = deque(maxlen=3)
        self.open = []

    def waits(self):
        return len(self.open) > 0

    def feed(self, token, spelled):
        self.open.append(token)
        if spelled.startswith("<0x") and len(spelled) == 6:
            return ""
        whole = self.decode([*self.known, *self.open])
        return "" if whole.endswith("\ufffd") and spelled != "\ufffd" else self.rest()

    def rest(self):
        if not self.open:
            return ""
        old = self.decode(list(self.known))
        new = self.decode([*self.known, *self.open])
        self.known.clear()
        self.known.append(self.open[-1])
        self.open = []
        return new[len(old.rstrip("\ufffd")) if self.begins(old) else len(old) :]

    def begins(self, old):
        return old.endswith("\ufffd") and self.first

    first = True


class IncrementalDetokenizer:
    def __init__(self, tokenizer, prompt_token_ids=()):
        self.tokenizer = tokenizer
        self.skipped = set(tokenizer.all_special_ids)
        kind = type(tokenizer.backend_tokenizer.decoder).__name__
        self.inner = ByBytes() if kind == "ByteLevel" else ByWindow(self.decode)
        self.add(list(prompt_token_ids)[-50:])
        if isinstance(self.inner, ByWindow):
            self.inner.known.extend(self.inner.open)
            self.inner.open = []

    def decode(self, ids):
        return self.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    @property
    def pending(self):
        return self.inner.waits()

    def add(self, token_ids):
        parts = []
        for token in token_ids:
            spelled = self.tokenizer.convert_ids_to_tokens(token)
            if spelled and token not in self.skipped:
                parts.append(self.inner.feed(token, spelled))
                self.inner.first = False
        return "".join(parts)

    def finish(self):
        return self.inner.rest()
