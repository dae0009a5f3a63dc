"""
The settings that admins change while the console runs, in memory, for whatever goes by them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from webhookrx.console.own_settings.saved_setting import MASKS, RETENTION, SavedSetting, read_setting, save_setting
from webhookrx.console.own_settings.setting_types import MaskSetting, RetentionSetting, check_retention, checked_masks
from webhookrx.console.store.history import Author

if TYPE_CHECKING:
    from webhookrx.console.console import Console

_NAMES: Final = (MASKS, RETENTION)


class LiveSettings:
    """
    See L{webhookrx.console.console.ConsolePart}; it starts before what goes by it.

    @ivar masks: the names that taps mask.
    @ivar retention: for how long what is kept.
    @ivar generations: of each setting, by its name.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self.masks = MaskSetting()
        self.retention = RetentionSetting()
        self.generations = dict.fromkeys(_NAMES, 0)

    async def start(self) -> None:
        """Read them."""
        for name in _NAMES:
            self._use(name, await self._console.store.look(partial(read_setting, name=name)))

    def tick(self) -> None:
        """Nothing here has a deadline."""

    async def stop(self) -> None:
        """Nothing is open."""

    async def save_masks(self, author: Author, generation: int, asked: MaskSetting) -> None:
        """
        Save the masks, and give them to all routers.

        @param generation: see L{save_setting}.
        @raise ApiProblem: they can't be used, or have changed since.
        """
        masks = checked_masks(asked)
        saved = await self._console.store.write(lambda tx: save_setting(tx, author, MASKS, generation, masks))
        self._use(MASKS, saved)
        if self._console.fleet is not None:
            await self._console.fleet.replan()

    async def save_retention(self, author: Author, generation: int, asked: RetentionSetting) -> None:
        """
        Save for how long what is kept. What is too old goes within some minutes.

        @param generation: see L{save_setting}.
        @raise ApiProblem: it is out of bounds, or has changed since.
        """
        check_retention(asked)
        saved = await self._console.store.write(lambda tx: save_setting(tx, author, RETENTION, generation, asked))
        self._use(RETENTION, saved)

    def _use(self, name: str, saved: SavedSetting) -> None:
        # Of two that are saved at a time, the later one stays.
        if saved.generation < self.generations[name]:
            return
        self.generations[name] = saved.generation
        if saved.value is None:
            return
        if name == MASKS:
            self.masks = msgspec.convert(saved.value, MaskSetting)
        else:
            self.retention = msgspec.convert(saved.value, RetentionSetting)
