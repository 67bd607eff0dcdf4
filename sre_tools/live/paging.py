"""Pages of long replies: a reply returns its first page, `more` with its cursor the next.

Only the latest long replies are stored; an older cursor is refused.
"""

from __future__ import annotations

from collections import OrderedDict

from sre_tools.errors import ToolError

PAGE = 16_000  # characters; chosen: about 4,000 tokens of an agent's context
_MAX_CHARACTERS = 4_000_000  # stored per reply
_MAX_REPLIES = 32


class Pages:
    def __init__(self, page: int = PAGE) -> None:
        self._page = page
        self._texts: OrderedDict[int, str] = OrderedDict()
        self._number = 0

    def first(self, text: str) -> str:
        """The first page of a reply, with a cursor if there is more."""
        if len(text) <= self._page:
            return text or "(nothing)"
        self._number += 1
        self._texts[self._number] = text[:_MAX_CHARACTERS]
        while len(self._texts) > _MAX_REPLIES:
            self._texts.popitem(last=False)
        return self._cut(self._number, 0)

    def more(self, cursor: str) -> str:
        """The page at a cursor."""
        number, _, offset = cursor.partition(":")
        if not (number.isdigit() and offset.isdigit()) or int(number) not in self._texts:
            raise ToolError("that cursor is not known (any more): make the call again")
        return self._cut(int(number), int(offset))

    def _cut(self, number: int, start: int) -> str:
        text = self._texts[number]
        end = start + self._page
        if end < len(text):
            end = text.rfind("\n", start + self._page // 2, end) + 1 or end  # at the end of a line, if possible
        left = len(text) - end
        if left <= 0:
            return text[start:] or "(nothing)"
        return f'{text[start:end]}\n[{left} more characters: call `more` with cursor "{number}:{end}"]'
