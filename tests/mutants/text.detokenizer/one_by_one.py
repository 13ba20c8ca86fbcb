# mistake: each token is decoded alone
"""The shortest program that anybody writes first."""


class IncrementalDetokenizer:
    pending = False

    def __init__(self, tokenizer, prompt_token_ids=()):
        self.tokenizer = tokenizer

    def add(self, token_ids):
        return "".join(
            self.tokenizer.decode([t], skip_special_tokens=True, clean_up_tokenization_spaces=False)
            for t in token_ids
        )

    def finish(self):
        return ""
