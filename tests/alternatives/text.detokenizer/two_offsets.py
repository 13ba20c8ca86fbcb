"""All ids in one list and two offsets into it, as vLLM's slow path has them."""

import re


class IncrementalDetokenizer:
    def __init__(self, tokenizer, prompt_token_ids=()):
        self.tokenizer = tokenizer
        self.ids = list(prompt_token_ids)[-400:]
        self.prefix = 0
        self.read = len(self.ids)
        self.before = self.text(self.ids).rstrip("\ufffd")
        self.waiting = False

    def text(self, ids):
        return self.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    @property
    def pending(self):
        return self.waiting

    def add(self, token_ids):
        out = ""
        for token in token_ids:
            spelled = self.tokenizer.convert_ids_to_tokens(token)
            if spelled is None or token in self.tokenizer.all_special_ids:
                continue
            self.ids.append(token)
            now = self.text(self.ids[self.prefix :])
            self.waiting = now.endswith("\ufffd") or bool(re.fullmatch("<0x..>", spelled))
            if not self.waiting:
                out += self.take(now)
            elif now.endswith("\ufffd") and len(self.ids) - self.read > 10 and spelled[0] != "<":
                out += now[len(self.before) : -1]
                self.prefix = self.read = len(self.ids) - 4
                self.before = self.text(self.ids[self.prefix :])[:-1]
        return out

    def take(self, now):
        new = now[len(self.before) :]
        self.prefix = max(self.read, len(self.ids) - 1)
        self.read = len(self.ids)
        self.before = self.text(self.ids[self.prefix :])
        return new

    def finish(self):
        return self.take(self.text(self.ids[self.prefix :])) if self.waiting else ""
