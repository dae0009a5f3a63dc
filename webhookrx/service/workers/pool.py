"""
All workers: started, watched, changed and stopped together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from webhookrx.backoff import Random
from webhookrx.errors import ConfigError
from webhookrx.operations.counters import Counters
from webhookrx.operations.facts import Facts
from webhookrx.operations.health import WorkerState
from webhookrx.service.workers.log_lines import WorkersLog
from webhookrx.service.workers.messages import (
    Begin,
    Change,
    Changed,
    Failed,
    Fitness,
    Hurry,
    Line,
    PortsClosed,
    Ready,
    Reopen,
    State,
    Stop,
    ToParent,
)
from webhookrx.service.workers.past import Past
from webhookrx.service.workers.portable_settings import portable
from webhookrx.service.workers.process import Launch
from webhookrx.service.workers.restarts import Restarts
from webhookrx.service.workers.slot import Member, Wanted
from webhookrx.settings import Settings

#: Seconds after the time for an orderly end at which a worker is killed; its own guard comes later than that.
KILL_AFTER = 2.5

#: Seconds for which one that is in a hurry may still live.
LAST_MOMENT = 0.6

_log = Logger()


class Sockets(NamedTuple):
    """
    What workers accept from, and take turns by.

    @ivar descriptors: the listening sockets, by C{Listener.inner}.
    @ivar turns: the file by which workers take turns.
    """

    descriptors: Mapping[str, int]
    turns: int


class Crew:
    """
    Has as many workers live as the settings say.

    All that is timed is looked at by L{tick}.

    @param launch: starts one.
    @param sockets: gives what they accept from now.
    @param clock: seconds on the monotonic clock.
    @param random: a number from 0 to 1, as C{random.random}.
    @param up: called once, when all of them receive for the first time.
    @param failed: called with the reason when one of them says that it can't begin, as long as they have not all begun.
        One that ends without a word is followed by another, then as later.
    @ivar settings: those that they go by.
    @ivar restarts: how many ended when nobody had told them to.
    """

    def __init__(
        self,
        launch: Launch,
        sockets: Callable[[], Sockets],
        settings: Settings,
        clock: Callable[[], float],
        random: Random,
        *,
        up: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.restarts = 0
        self._launch = launch
        self._sockets = sockets
        self._clock = clock
        self._random = random
        self._up = up
        self._failed = failed
        self._members: dict[int, Member] = {}
        self._past = Past()
        self._log = WorkersLog(clock)
        self._begun = False
        self._fit = False
        self._changing = False
        self._orders = 0
        self._stopping = False
        self._whole = True
        self._ports_closed: Deferred[None] = Deferred()
        self._ended: Deferred[bool] = Deferred()

    # -- what is known of them -----------------------------------------------------------------------------------

    @property
    def workers(self) -> list[WorkerState]:
        """How each of those is that are to receive."""
        now, patience = self._clock(), self.settings.limits.answer_time
        wanted = [member for member in self._members.values() if member.wanted is Wanted.RUN]
        return [member.health(now, patience) for member in wanted]

    @property
    def facts(self) -> list[Facts]:
        """What those are like who live; their spools have counted what those had who live no more."""
        living = [member.state.facts for member in self._members.values() if member.state is not None]
        return self._past.with_counts(living)

    @property
    def counters(self) -> Counters:
        """All that they have counted, those included that live no more."""
        total = self._past.counters.copy()
        for member in self._members.values():
            total.add_all(member.counters)
        return total

    @property
    def stuck(self) -> bool:
        """Whether one of them hangs, or an observer of one does."""
        hangs = any(worker.stuck for worker in self.workers)
        return hangs or any(member.state is not None and member.state.stuck for member in self._members.values())

    # -- their life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all of them."""
        self._add()

    def tick(self) -> None:
        """Start who is due, kill who is overdue; called now and then."""
        now = self._clock()
        for member in list(self._members.values()):
            if member.worker is not None and now >= member.kill_at:
                member.kill_at = inf
                _log.critical("Worker {worker} does not end, and is killed", worker=member.number)
                member.worker.kill()
            if member.changed is not None and now >= member.change_until:
                self._dismiss(member)
                self._answer(member, Changed(member.order, False, f"Worker {member.number} hangs."))
            # During a change nobody could say by which settings it should begin.
            if now >= member.restarts.due and not (self._changing or self._stopping):
                self._begin(member)
        if self._begun and not (self._changing or self._stopping):
            self._renew()

    def _renew(self) -> None:
        """
        Have as many as the settings say, each of whom knows how many they are: what one has, such as a directory of a
        spool, depends on it. Those who are too many end first; then those who stay are replaced one by one, so that
        some receive all the time; those who are missing come last.
        """
        if not all(member.up and not member.told_to_end for member in self._members.values()):
            return
        for member in self._members.values():
            if member.size != self.settings.workers:
                self._dismiss(member)
                return
        self._add()

    def _add(self) -> None:
        """Start those who are missing."""
        for number in range(self.settings.workers):
            if number not in self._members:
                self._members[number] = Member(number, Restarts(self._random))
                self._begin(self._members[number])

    def _let_go(self) -> None:
        """Have those end who are too many."""
        for number, member in list(self._members.items()):
            if number < self.settings.workers:
                member.wanted = Wanted.RUN
            elif member.wanted is Wanted.RUN:
                member.wanted = Wanted.END
                self._dismiss(member)

    def _begin(self, member: Member) -> None:
        try:
            worker = self._launch(_Ear(self, member))
        except OSError as error:
            self.see_end(member, f"could not be started: {error.strerror}", -1)
            return
        size = self.settings.workers
        member.occupy(worker, size, self._clock())
        sockets = self._sockets()
        worker.say(
            Begin(portable(self.settings), member.number, size, tuple(sockets.descriptors)),
            [*sockets.descriptors.values(), sockets.turns],
        )

    def _dismiss(self, member: Member) -> None:
        """Have its worker finish what is under way, and end."""
        if member.worker is None:
            self._members.pop(member.number, None)
        else:
            member.told_to_end = True
            member.kill_at = self._clock() + self.settings.drain_timeout + KILL_AFTER
            member.worker.say(Stop())

    # -- what they say -------------------------------------------------------------------------------------------

    def hear(self, member: Member, message: ToParent) -> None:
        """The worker of a member says something."""
        member.heard = self._clock()
        match message:
            case Line():
                self._log.write(member.number, message)
            case State():
                member.tell(message)
            case Ready():
                member.up = True
                self.say_fitness(self._fit)
                if not self._begun and all(each.up for each in self._members.values()):
                    self._begun = True
                    self._up()
            case Failed(text=text):
                member.failure = text
            case PortsClosed():
                member.up = member.accepts = False
                self._look_at_ports()
            case Changed(order=order) if order == member.order:
                self._answer(member, message)

    def report_held_back(self) -> None:
        """Tell how many lines of theirs were too many for the log; called every few seconds."""
        self._log.report_held_back()

    def see_silence(self, member: Member) -> None:
        """The worker of a member lives, but can be told nothing any more. It takes that for its parent's end."""
        member.up = member.accepts = False
        member.kill_at = min(member.kill_at, self._clock() + self.settings.drain_timeout + KILL_AFTER)
        self._look_at_ports()

    def see_end(self, member: Member, how: str, status: int) -> None:
        """The worker of a member has ended."""
        failure, told = member.failure, member.told_to_end
        self._past.add(member.counters, None if member.state is None else member.state.facts)
        member.vacate()
        if self._stopping:
            self._whole = self._whole and status == 0
            self._look_at_ends()
        elif member.wanted is Wanted.END:
            del self._members[member.number]
        elif failure and not self._begun:
            self._failed(failure)
        elif told:
            member.restarts.at_once(self._clock())
        else:
            self._follow(member, f"could not begin: {failure}" if failure else how)
        self._answer(member, Changed(member.order, False, f"Worker {member.number} {how} while it changed."))

    def _follow(self, member: Member, how: str) -> None:
        """Have another worker in the place of one that has ended."""
        self.restarts += 1
        now = self._clock()
        member.restarts.ended(now)
        pause = max(0.0, member.restarts.due - now)
        _log.error(
            "Worker {worker} {how}; another one follows in {pause:.1f} s", worker=member.number, how=how, pause=pause
        )

    # -- changing ------------------------------------------------------------------------------------------------

    async def change(self, settings: Settings, descriptors: Mapping[str, int]) -> str:
        """
        Have them go by other settings, one after another, and become as many as these say soon after.

        @param descriptors: the sockets that come with the settings, by C{Listener.inner}.
        @return: what has changed.
        @raise ConfigError: one of them could not; all go by the old settings, or are started anew with them.
        """
        self._changing = True
        text = "no worker lives; the next ones begin with these settings"
        done: list[Member] = []
        try:
            for member in list(self._members.values()):
                if not member.accepts or member.wanted is Wanted.END:
                    continue  # who follows it begins with these settings
                changed = await self._change_one(member, settings, descriptors)
                if not changed.ok or self._stopping:
                    await self._change_back(done)
                    raise ConfigError(changed.text if not changed.ok else "The receiver stops.")
                text = changed.text
                done.append(member)
            self.settings = settings
            self._let_go()
        finally:
            self._changing = False
        return text

    async def _change_back(self, members: Sequence[Member]) -> None:
        for member in members:
            if not member.accepts or self._stopping:
                continue
            changed = await self._change_one(member, self.settings, self._sockets().descriptors)
            if not changed.ok and member.worker is not None:
                _log.error("Worker {worker} can't go back: {why}", worker=member.number, why=changed.text)
                self._dismiss(member)

    async def _change_one(self, member: Member, settings: Settings, descriptors: Mapping[str, int]) -> Changed:
        assert member.worker is not None
        self._orders += 1
        member.order = self._orders
        member.changed = changed = Deferred[Changed]()
        member.change_until = self._clock() + self.settings.limits.answer_time + self.settings.drain_timeout
        member.worker.say(Change(member.order, portable(settings), tuple(descriptors)), list(descriptors.values()))
        return await changed

    def _answer(self, member: Member, answer: Changed) -> None:
        if member.changed is not None:
            changed, member.changed = member.changed, None
            changed.callback(answer)

    def say_fitness(self, fit: bool) -> None:
        """Have them all know whether the service as a whole should be sent messages; who knows it is told nothing."""
        self._fit = fit
        for member in self._members.values():
            if member.up and member.worker is not None and member.fit is not fit:
                member.fit = fit
                member.worker.say(Fitness(fit))

    def reopen(self) -> None:
        """Have them open the files of messages anew by name."""
        for member in self._members.values():
            if member.worker is not None:
                member.worker.say(Reopen())

    # -- stopping ------------------------------------------------------------------------------------------------

    def stop(self, seconds: float) -> tuple[Deferred[None], Deferred[bool]]:
        """
        Have all finish what is under way, and end.

        @param seconds: for that; who lives much longer is killed.
        @return: what fires when none of them accepts connections any more; and what fires when all have ended, with
            whether all have ended well.
        """
        self._stopping = True
        for member in self._members.values():
            if member.worker is not None:
                member.kill_at = self._clock() + seconds + KILL_AFTER
                member.worker.say(Stop())
        self._look_at_ends()
        return self._ports_closed, self._ended

    def hurry(self) -> None:
        """Have all end at once; L{stop} must have been called."""
        for member in self._members.values():
            if member.worker is not None:
                member.kill_at = min(member.kill_at, self._clock() + LAST_MOMENT)
                member.worker.say(Hurry())

    def _look_at_ports(self) -> None:
        closed = not any(member.accepts for member in self._members.values())
        if closed and self._stopping and not self._ports_closed.called:
            self._ports_closed.callback(None)

    def _look_at_ends(self) -> None:
        self._look_at_ports()
        if not self._ended.called and all(member.worker is None for member in self._members.values()):
            self._ended.callback(self._whole)


class _Ear:
    """
    Hears one worker.
    """

    def __init__(self, crew: Crew, member: Member) -> None:
        self.heard = partial(crew.hear, member)
        self.fell_silent = partial(crew.see_silence, member)
        self.ended = partial(crew.see_end, member)
