"""Values of users in messages: on one line, and not all of them where they are long."""

from __future__ import annotations

LONGEST = 80


def shown(value: object) -> str:
    """As Python writes it, cut after `LONGEST` characters."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # numbers of thousands of digits have no text
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
