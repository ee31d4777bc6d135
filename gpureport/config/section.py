"""What all sections of the configuration have in common."""

from __future__ import annotations

import re

from pydantic import AfterValidator, BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the configuration: it cannot be changed, and a key that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def formed(pattern: str, form: str) -> AfterValidator:
    """For text that must match the whole pattern: what does not is refused with ``form``, which says how to write it."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"write {form}")
        return text

    return AfterValidator(check)
