"""An iterator that counts the blocks taken from it."""


class Recording:
    """An iterator that remembers what was taken from it."""

    def __init__(self, blocks):
        self.blocks = list(blocks)
        self.taken = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.taken == len(self.blocks):
            raise StopIteration
        self.taken += 1
        return self.blocks[self.taken - 1]
