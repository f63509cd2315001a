"""Shows hidden characters to a person who decides: `shared/reading/hidden.ts` in Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from unicodedata import normalize

from ._characters import HIDDEN, MARKS, MODIFIERS, PICTOGRAPHS

_P, _M = f"[{PICTOGRAPHS}]", f"[{MODIFIERS}]"
#: A joiner within an emoji, and the selector that makes a character an emoji.
_WITHIN_EMOJI = rf"(?:(?<={_P})|(?<={_P}{_M})|(?<={_P}\ufe0f)|(?<={_P}{_M}\ufe0f))\u200d(?={_P})|(?<={_P})\ufe0f"
_HIDDEN = re.compile(rf"(?!{_WITHIN_EMOJI})[{HIDDEN}]")
#: A backslash that may look like the beginning of one of our escapes.
_ESCAPE_LIKE = re.compile(r"\\(?=u([\da-f]{4})|u\{([\da-f]{5,6})\}|r)", re.ASCII)
#: Characters with another spelling that looks the same.
_COMPOSED = re.compile(
    rf"[^\n\r\u2028\u2029][{MARKS}]+|[\u0340-\u0343\u0374\u037e\u0387\u1f71-\u1fff\u2126-\u212b\u2329\u232a\uf900-\ufaff\U0002f800-\U0002fa1f]"
)


def show_hidden(text: str) -> str:
    """The text with escapes for invisible characters, so that two different texts never look alike. Line ends and
    tabs stay.
    """
    return _escape_hidden(_ESCAPE_LIKE.sub(_backslash, text), _shown)


def show_controls(text: str) -> str:
    """The same, as one line."""
    one_line = show_hidden(re.sub(r"\\(?=[nt])", lambda _: r"\u005c", text))
    return one_line.replace("\n", r"\n").replace("\t", r"\t")


def show_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON in which invisible characters are escaped."""
    separators = (",", ": " if indent else ":")
    return _escape_hidden(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators), _json_escape)


def _escape_hidden(text: str, escape: Callable[[str], str]) -> str:
    def composed(found: re.Match[str]) -> str:
        whole = found[0]
        return whole if normalize("NFC", whole) == whole else "".join(char if char < "\x80" else escape(char) for char in whole)

    return _COMPOSED.sub(composed, _HIDDEN.sub(lambda found: escape(found[0]), text))


def _backslash(found: re.Match[str]) -> str:
    code = int(found[1] or found[2] or "d", 16)
    return r"\u005c" if code <= 0x10FFFF and _is_escaped(code) else "\\"


def _is_escaped(code: int) -> bool:
    char = chr(code)
    return char == "\\" or bool(_HIDDEN.search(char) or re.match(f"[{MARKS}]", char)) or normalize("NFC", char) != char


def _shown(char: str) -> str:
    return r"\r" if char == "\r" else _escape(char)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{{{code:x}}}" if code > 0xFFFF else f"\\u{code:04x}"


def _json_escape(char: str) -> str:
    """JSON escapes are UTF-16 units."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
