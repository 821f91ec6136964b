"""Damage to the bytes of files: each takes a path and random numbers, and says what it did."""


def on_bytes(change):
    """A damage to the bytes of a file."""

    def damage(path, chance, _other):
        content = bytearray(path.read_bytes())
        said = change(content, chance)
        path.write_bytes(content)
        return said

    damage.__name__ = change.__name__
    return damage


def flip_a_bit(content, chance):
    at, bit = chance.randrange(len(content)), chance.randrange(8)
    content[at] ^= 1 << bit
    return f"bit {bit} of byte {at}"


def flip_bits(content, chance):
    places = [chance.randrange(len(content)) for _ in range(16)]
    for at in places:
        content[at] ^= 1 << chance.randrange(8)
    return f"bits of bytes {places}"


def flip_a_bit_at_the_beginning(content, chance):
    at, bit = chance.randrange(min(len(content), 4096)), chance.randrange(8)
    content[at] ^= 1 << bit
    return f"bit {bit} of byte {at}"


def cut(content, chance):
    length = chance.randrange(len(content))
    del content[length:]
    return f"to {length} bytes"


def cut_a_little(content, chance):
    left = chance.randrange(1, 64)
    del content[-left:]
    return f"by {left} bytes"


def zero_a_block(content, chance):
    at, size = chance.randrange(len(content)), chance.choice([4, 64, 512, 4096])
    size = min(size, len(content) - at)
    content[at : at + size] = bytes(size)
    return f"{size} bytes at {at}"


def overwrite_a_block(content, chance):
    at, size = chance.randrange(len(content)), chance.choice([1, 4, 64, 512])
    size = min(size, len(content) - at)
    content[at : at + size] = chance.randbytes(size)
    return f"{size} bytes at {at}"


def swap_blocks(content, chance):
    size = min(512, len(content) // 3)
    one, two = sorted(chance.sample(range(0, len(content) - size, size), 2))
    first, second = content[one : one + size], content[two : two + size]
    content[one : one + size], content[two : two + size] = second, first
    return f"{size} bytes at {one} and {two}"


def remove_a_block(content, chance):
    at = chance.randrange(len(content))
    del content[at : at + 8]
    return f"8 bytes at {at}"


def append_rubbish(content, chance):
    content += chance.randbytes(100)
    return "100 bytes"


BYTES = [
    *map(on_bytes, (flip_a_bit, flip_bits, flip_a_bit_at_the_beginning, cut, cut_a_little)),
    *map(on_bytes, (zero_a_block, overwrite_a_block, swap_blocks, remove_a_block, append_rubbish)),
]
