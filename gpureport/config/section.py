"""Base of all sections of the configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from gpureport.values.errors import UsageError


class Section(BaseModel):
    """A section of the configuration: it cannot be changed, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_kinds(cls, values: Any) -> Any:
        """Refuse a boolean for a number, and a number for a boolean, because pydantic converts one into the other."""
        if isinstance(values, BaseModel):
            return values
        if not isinstance(values, dict):
            raise ValueError("write a table of settings")
        for name, value in values.items():
            kind = cls.model_fields[name].annotation if name in cls.model_fields else None
            if isinstance(value, bool) and {kind, *get_args(kind)} & {int, float}:
                raise ValueError(f"{name} is a number, not {str(value).lower()}")
            if kind is bool and isinstance(value, int | float) and not isinstance(value, bool):
                raise ValueError(f"{name} is true or false, not {value}")
            if isinstance(value, str) and "\0" in value:
                raise ValueError(f"{name} has a zero byte in it")
        return values


def formed(pattern: str, form: str) -> AfterValidator:
    """Return a validator for text that must match the whole pattern; its error says to write ``form``."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"write {form}")
        return text

    return AfterValidator(check)


Seconds = Annotated[float, Field(gt=0, le=86_400)]
"""A timeout: a day at most, because system clocks do not accept infinity."""
CLUSTER_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
ClusterName = Annotated[str, formed(CLUSTER_NAME, "a name of letters, digits, '.', '_' and '-', at most 100 of them")]
LabelName = Annotated[str, formed(r"[a-zA-Z_][a-zA-Z0-9_]*", "the name of a label, such as cluster")]


def existing(key: str, name: str) -> str:
    """Return a file's name, or '' for none; UsageError where the file is missing."""
    if name and not Path(name).is_file():
        raise UsageError(f"{key} = {name!r}: this file is not there; correct the configuration")
    return name
