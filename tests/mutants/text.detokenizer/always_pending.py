# mistake: pending is always True
"""Says that it waits, always."""


class IncrementalDetokenizer:
    def __init__(self, tokenizer, prompt_token_ids=()):
        self.tokenizer = tokenizer
        self.few = [t for t in prompt_token_ids if self.speaks(t)][-8:]
        self.new = []
        self.half = self.decode(self.few).endswith("\ufffd")

    def speaks(self, token):
        known = self.tokenizer.convert_ids_to_tokens(token) is not None
        return known and token not in self.tokenizer.all_special_ids

    def decode(self, ids):
        return self.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    @property
    def pending(self):
        return True

    def add(self, token_ids):
        return "".join(map(self.step, filter(self.speaks, token_ids)))

    def step(self, token):
        self.new.append(token)
        spelled = self.tokenizer.convert_ids_to_tokens(token)
        is_byte = spelled[:3] == "<0x" and spelled[-1:] == ">"
        if is_byte or self.decode([*self.few, *self.new])[-1:] == "\ufffd":
            return ""
        return self.finish()

    def finish(self):
        if not self.new:
            return ""
        old, both = self.decode(self.few), self.decode([*self.few, *self.new])
        if self.half:
            old, self.half = old.rstrip("\ufffd"), False
        self.few, self.new = self.new[-1:], []
        return both[len(old) :]
