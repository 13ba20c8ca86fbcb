# mistake: all text is decoded again for every token
"""All ids, decoded again for every token: right, and slower and slower."""


class IncrementalDetokenizer:
    def __init__(self, tokenizer, prompt_token_ids=()):
        self.tokenizer = tokenizer
        self.ids = list(prompt_token_ids)
        self.shown = len(self.text().rstrip("\ufffd"))
        self.pending = False

    def text(self):
        return self.tokenizer.decode(
            self.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def add(self, token_ids):
        for token in token_ids:
            spelled = self.tokenizer.convert_ids_to_tokens(token)
            if spelled is not None and token not in self.tokenizer.all_special_ids:
                self.ids.append(token)
                is_byte = spelled.startswith("<0x")
                self.pending = is_byte or self.text().endswith("\ufffd")
        return "" if self.pending else self.finish()

    def finish(self):
        text = self.text()
        new, self.shown = text[self.shown :], len(text)
        return new
