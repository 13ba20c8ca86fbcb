# mistake: none
"""Counts special tokens among the last few: they have no text, and push out what has."""


class IncrementalDetokenizer:
    def __init__(self, tokenizer, prompt_token_ids=()):
        self.tokenizer = tokenizer
        self.few = list(prompt_token_ids)[-4:]
        self.old = self.decode(self.few).rstrip("\ufffd")
        self.new = []

    def decode(self, ids):
        return self.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    @property
    def pending(self):
        return self.new != []

    def add(self, token_ids):
        return "".join(map(self.step, token_ids))

    def step(self, token):
        self.new.append(token)
        spelled = self.tokenizer.convert_ids_to_tokens(token) or ""
        is_byte = spelled[:3] == "<0x" and spelled[-1:] == ">"
        if is_byte or self.decode([*self.few, *self.new])[-1:] == "\ufffd":
            return ""
        return self.finish()

    def finish(self):
        added = self.decode([*self.few, *self.new])[len(self.old) :]
        self.few, self.new = [*self.few, *self.new][-4:], []
        self.old = self.decode(self.few)
        return added
