"""What all sections of the configuration have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the configuration: it cannot be changed, and a key that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
