"""The last few tokens, and the new ones behind them: what is out is text, not tokens."""


class IncrementalDetokenizer:
    def __init__(self, tokenizer, prompt_token_ids=()):
        self.tokenizer = tokenizer
        self.few = [t for t in prompt_token_ids if self.speaks(t)][-8:]
        self.new = []
        self.old = self.decode(self.few).rstrip("\ufffd")

    def speaks(self, token):
        known = self.tokenizer.convert_ids_to_tokens(token) is not None
        return known and token not in self.tokenizer.all_special_ids

    def decode(self, ids):
        return self.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    @property
    def pending(self):
        return self.new != []

    def add(self, token_ids):
        return "".join(map(self.step, filter(self.speaks, token_ids)))

    def step(self, token):
        self.new.append(token)
        spelled = self.tokenizer.convert_ids_to_tokens(token)
        is_byte = spelled[:3] == "<0x" and spelled[-1:] == ">"
        if is_byte:
            return ""
        both = self.decode([*self.few, *self.new])
        if both[-1:] != "\ufffd":
            return self.finish()
        return self.without_last(both) if len(self.new) > 6 else ""

    def without_last(self, both):
        certain = both[len(self.old) : -1]
        self.few, self.new = [], self.new[-4:]
        self.old = self.decode(self.new)[:-1]
        return certain

    def finish(self):
        if not self.new:
            return ""
        added = self.decode([*self.few, *self.new])[len(self.old) :]
        self.few, self.new = self.new[-1:], []
        self.old = self.decode(self.few)
        return added
