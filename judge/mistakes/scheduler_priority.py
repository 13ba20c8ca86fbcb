"""Owns the known mistakes of `scheduler.priority`: each is wrong in the one way its name says."""

from __future__ import annotations

from judge.mistakes.scheduler_plain import PlainScheduler
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk


class SignWrong(PlainScheduler):
    def urgency(self, request: Request) -> tuple[int, int]:
        return -request.priority, request.arrival


class LatestFirst(PlainScheduler):
    def urgency(self, request: Request) -> tuple[int, int]:
        return request.priority, -request.arrival


class LastGoes(PlainScheduler):
    def victim(self, request: Request) -> Request:
        return self.running[-1]


class MostUrgentGoes(PlainScheduler):
    def victim(self, request: Request) -> Request:
        if self.config.policy == "priority":
            return min(self.running, key=self.urgency)
        return self.running[-1]


class ToTheFront(PlainScheduler):
    def wait_again(self, victim: Request) -> None:
        self.waiting.insert(0, victim)


class NewArrival(PlainScheduler):
    def wait_again(self, victim: Request) -> None:
        if self.config.policy == "priority":
            victim.arrival = self.arrivals
            self.arrivals += 1
        super().wait_again(victim)


class ChunkStays(PlainScheduler):
    def unschedule(self, victim: Request) -> None:
        """Nothing is taken out of the step."""


class ChunkStaysAndAdds(ChunkStays):
    def advance(self, chunk: Chunk) -> None:
        chunk.request.num_computed += chunk.num_tokens


class BudgetGone(PlainScheduler):
    def unschedule(self, victim: Request) -> None:
        left = self.left
        super().unschedule(victim)
        self.left = left


class NamesStay(PlainScheduler):
    def unschedule(self, victim: Request) -> None:
        chunk = self.chunks.pop(victim.request_id, None)
        if chunk is not None:
            self.left += chunk.num_tokens


class EverybodysNames(PlainScheduler):
    def unschedule(self, victim: Request) -> None:
        chunk = self.chunks.pop(victim.request_id, None)
        if chunk is not None:
            self.left += chunk.num_tokens
            self.cache.take_back_names()


class SkipsAfterVictim(PlainScheduler):
    """Walks over the list from which victims are taken."""

    def serve_running(self) -> None:
        for request in self.running:
            if self.left > 0:
                self.serve(request)


class IndexNotShifted(PlainScheduler):
    """The index stays if the request itself went, and also if one before it did."""

    def serve_running(self) -> None:
        index = 0
        while index < len(self.running) and self.left > 0:
            request = self.running[index]
            self.serve(request)
            index += request in self.running


class NoArrival(PlainScheduler):
    def add(self, request: Request) -> None:
        super().add(request)
        request.arrival = 0
        self.sort()


class AdmitsAfterwards(PlainScheduler):
    def may_admit(self) -> bool:
        return True


class Always(PlainScheduler):
    def sort(self) -> None:
        self.waiting.sort(key=self.urgency)


class OrderedAtArrival(PlainScheduler):
    def wait_again(self, victim: Request) -> None:
        self.waiting.append(victim)


class RunningSorted(PlainScheduler):
    def serve_running(self) -> None:
        if self.config.policy == "priority":
            self.running.sort(key=self.urgency)
        super().serve_running()
