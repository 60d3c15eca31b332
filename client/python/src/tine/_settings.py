"""Turns the parameters of `connect` into Settings."""

from __future__ import annotations

from typing import Optional

from tine._call import Settings
from tine._envelope import token_field
from tine._place import address_of


def settings_of(url: Optional[str], token: Optional[str], retry: float, *, start: bool) -> Settings:
    """Raises ValueError."""
    address = address_of(url)
    if start and address.is_tcp:
        raise ValueError("start needs an ipc:// URL: tined is started on this host only")
    if retry < 0:
        raise ValueError("retry must not be negative")
    return Settings(
        address=address,
        token=token_field(token or ""),
        retry_s=float(retry),
        starts_tined=start,
    )
