"""An encoder of XOR chunks, one bit at a time: slow, and plain enough to be checked against the format by reading it."""

from __future__ import annotations

from collections.abc import Sequence

from .samples import Sample

_MASK = (1 << 64) - 1


def encode(samples: Sequence[Sample]) -> bytes:
    """The chunk of (milliseconds, float64 bits)."""
    stream = ""
    delta = 0
    window: tuple[int, int] | None = None
    for number, (time_ms, value) in enumerate(samples):
        if number == 0:
            stream += _varint(_zigzag(time_ms)) + f"{value:064b}"
            continue
        previous_delta, delta = delta, time_ms - samples[number - 1][0]
        stream += _varint(delta & _MASK) if number == 1 else _delta_of_delta(delta - previous_delta)
        text, window = _value(value ^ samples[number - 1][1], window)
        stream += text
    stream += "0" * (-len(stream) % 8)
    octets = bytes(int(stream[at : at + 8], 2) for at in range(0, len(stream), 8))
    return len(samples).to_bytes(2, "big") + octets


def _zigzag(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def _varint(number: int) -> str:
    """Groups of seven bits, lowest first, each in an octet whose top bit says whether more follow."""
    octets = []
    while number >= 128:
        octets.append(128 | number & 127)
        number >>= 7
    return "".join(f"{octet:08b}" for octet in [*octets, number])


def _delta_of_delta(number: int) -> str:
    if number == 0:
        return "0"
    for prefix, width in (("10", 14), ("110", 17), ("1110", 20)):
        half = 1 << (width - 1)
        if -half < number <= half:
            return prefix + f"{number % (1 << width):0{width}b}"
    return "1111" + f"{number & _MASK:064b}"


def _value(xor: int, window: tuple[int, int] | None) -> tuple[str, tuple[int, int] | None]:
    """The bits for an XOR, and the (leading, trailing) zeros of the window then in force."""
    if xor == 0:
        return "0", window
    text = f"{xor:064b}"
    leading = min(len(text) - len(text.lstrip("0")), 31)
    trailing = len(text) - len(text.rstrip("0"))
    if window and leading >= window[0] and trailing >= window[1]:
        return "10" + text[window[0] : 64 - window[1]], window
    width = 64 - leading - trailing
    return "11" + f"{leading:05b}" + f"{width % 64:06b}" + text[leading : 64 - trailing], (leading, trailing)
