"""One running emulator: the order in which a request is judged, and the Python API around it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

from aiohttp import web

from proxy.emulator.accounts import KEYS, key_of
from proxy.emulator.answers import Answer, Refused, bad_parameter, refusal, refused
from proxy.emulator.clock import Clock
from proxy.emulator.content import PREFIX as CONTENT_PREFIX
from proxy.emulator.content import content, content_type
from proxy.emulator.control import PREFIX as CONTROL_PREFIX
from proxy.emulator.control import control
from proxy.emulator.delivery import Gates, deliver
from proxy.emulator.faults.asking import Armed, Asked, Recording, read_armed, read_marks
from proxy.emulator.faults.table import FAULTS, Fault
from proxy.emulator.journal import Journal, Seen
from proxy.emulator.limits import BODY_BYTES_MAX, MEMBER
from proxy.emulator.messages import BODY_TOO_LARGE, EDGE_BLOCK, NO_SUCH_PATH
from proxy.emulator.options import Options
from proxy.emulator.routes import Found, Router
from proxy.emulator.script import Script, script_of
from proxy.emulator.world import Call, World


class Gateway:
    """An emulator that can be started and stopped; `running` does both."""

    def __init__(self, options: Options | None = None, clock: Clock | None = None) -> None:
        self.options = options or Options()
        self.world = World(self.options, clock)
        self.journal = Journal()
        self.gates = Gates(self.journal.ring)
        self.recordings: dict[str, Recording] = {}
        self.armed: list[Armed] = [read_armed(text, FAULTS) for text in self.options.faults]
        self.port = 0
        self._router = Router(self.options.segment, strict_slashes=self.options.strict_slashes)
        self._server: web.Server | None = None
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        host = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        return f"http://{host}:{self.port}"

    async def start(self) -> None:
        # A gateway started again listens where it listened before: tests take it away and bring it back.
        # Cancelling handlers is how the journal learns that a caller left while nothing was being written.
        self._server = web.Server(self._handle, handler_cancellation=True, auto_decompress=False, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.options.host, self.port or self.options.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.world.origin = self.url

    async def stop(self) -> None:
        """Close every connection at once: held and hanging answers must not hold the shutdown."""
        if self._server is not None and self._runner is not None:
            for connection in self._server.connections:
                connection.force_close()
                if connection.transport is not None:
                    connection.transport.abort()
            await self._runner.cleanup()

    def reset(self) -> None:
        """Balances, limits, journal, faults, gates and recordings as at the start."""
        self.world.reset()
        self.gates.reset()
        self.recordings.clear()
        self.armed = [read_armed(text, FAULTS) for text in self.options.faults]
        self.journal.clear()

    def credits(self, member: str) -> int:
        """The balance of a member in units of 1e-8 credit."""
        return self.world.balances[member]

    def set_credits(self, member: str, units: int) -> None:
        self.world.balances[member] = units

    def set_fault(
        self, name: str, *, times: int | None = None, prefix: str = "", method: str | None = None, **params: object
    ) -> None:
        """Arm a fault of the table for this run; parameter names are those of its marker."""
        if name not in FAULTS:
            raise ValueError(f"there is no fault {name!r}; there are {', '.join(FAULTS)}")
        self.armed.append(Armed(name, {key: str(value) for key, value in params.items()}, times, prefix, method))

    def clear_faults(self) -> None:
        self.armed.clear()

    def open_gate(self, name: str) -> None:
        """Let answers pass that `slow gate=NAME` holds back."""
        self.gates.open(name)

    async def wait_for(self, holds: Callable[[Sequence[Seen]], bool], within_s: float = 60.0) -> None:
        """Return as soon as `holds(journal)`; raises TimeoutError after `within_s` real seconds."""
        await self.journal.wait_for(holds, within_s)

    async def wait_for_gate(self, name: str, waiting: int = 1, within_s: float = 60.0) -> None:
        """Return as soon as that many answers are held at a gate."""
        await self.journal.wait_for(lambda _: self.gates.waiting[name] >= waiting, within_s)

    @property
    def connections(self) -> int:
        return len(self._server.connections) if self._server else 0

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        target = request.raw_path
        if target.startswith(CONTENT_PREFIX):
            return web.Response(body=content(target), content_type=content_type(target))
        if target.startswith(CONTROL_PREFIX):
            return await control(self, request)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers]
        seen = self.journal.open(request.method, target, headers)
        try:
            script = await self._judged(request, target, seen)
            return await deliver(request, script, seen, self.gates, self.journal)
        except asyncio.CancelledError:
            seen.caller_gone = True
            self.journal.ring()
            raise

    async def _judged(self, request: web.BaseRequest, target: str, seen: Seen) -> Script:
        """The script of a request, whatever became of it."""
        try:
            call, found = await self._admitted(request, target, seen)
            asked = self._asked(call, request.headers.get("x-emulator-fault"), seen)
            seen.judged_s = self.world.clock.now_s()
            answer = self._answer(call, found, asked)
        except Refused as refused_:
            return script_of(refused_.answer)
        charged = answer.charge if all(fault.params.get("charge") != "no" for fault in asked) else 0
        self.world.balances[call.member] -= charged
        seen.charged = charged
        if answer.calls:
            self.world.tool_calls[answer.calls] += 1
        script = script_of(answer, self.options.chunk_delay_s)
        try:
            for row, fault in _acting(asked):
                script = row.delivery(script, answer, fault) if row.delivery else script
        except (KeyError, ValueError) as error:
            # A fault that is asked for wrongly must show, or a test would believe it had happened.
            return script_of(bad_parameter(f"fault {asked[-1].name}: {error}").answer)
        return script

    async def _admitted(self, request: web.BaseRequest, target: str, seen: Seen) -> tuple[Call, Found]:
        """A request that passed the edge, names a path, carries a key and is not too long."""
        if not request.headers.get("User-Agent", "").strip():
            raise refused(EDGE_BLOCK)
        path, _, query = target.partition("?")
        found = self._router.find(request.method, path)
        if found is None:
            raise refused(NO_SUCH_PATH)
        declared = request.content_length
        if declared is not None and declared > BODY_BYTES_MAX:
            raise refused(BODY_TOO_LARGE)
        x_api_key = None if found.route.bearer else request.headers.get("x-api-key")
        key = key_of(request.headers.get("Authorization"), x_api_key)
        seen.key, seen.member = key, KEYS[key]
        body = await _body(request)
        seen.got(body)
        turn = self.world.turn(request.method, target, body)
        values = dict(reversed(parse_qsl(query, keep_blank_values=True)))
        call = Call(request.method, target, found.parts, values, request.headers, body, key, seen.member, turn)
        return call, found

    def _asked(self, call: Call, header: str | None, seen: Seen) -> list[Asked]:
        """The faults of this request: those it names itself and those armed for the run."""
        try:
            named = read_marks(call.body, header, FAULTS)
        except ValueError as error:
            raise bad_parameter(str(error)) from None
        for row in self.armed:
            if row.meets(call.method, call.target):
                row.spend()
                named.append((row.name, dict(row.params)))
        seen.faults = [name for name, _ in named]
        return [Asked(name, params, call, self.recordings) for name, params in named]

    def _answer(self, call: Call, found: Found, asked: list[Asked]) -> Answer:
        for row, fault in _acting(asked):
            if row.instead:
                if row.name == "502" and fault.suite:
                    self.world.suite_failed(fault.suite)
                return row.instead(fault)
        if not found.right_method:
            return refusal(found.route.wrong_method)
        self.world.limit(MEMBER, call.member)
        for limit in found.route.limits:
            self.world.limit(limit, call.member)
        for row, _ in _acting(asked):
            call = row.call(call) if row.call else call
        answer = found.route.room(self.world, call)
        for row, fault in _acting(asked):
            answer = row.answer(answer, fault) if row.answer and answer.status == 200 else answer
        return answer


@asynccontextmanager
async def running(options: Options | None = None, clock: Clock | None = None) -> AsyncIterator[Gateway]:
    """A gateway on a real port for as long as the block lasts."""
    gateway = Gateway(options, clock)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()


async def _body(request: web.BaseRequest) -> bytes:
    """The body as it was sent, counted while it arrives."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    pieces, size = [], 0
    async for piece in request.content.iter_any():
        size += len(piece)
        if size > BODY_BYTES_MAX:
            raise refused(BODY_TOO_LARGE)
        pieces.append(piece)
    return b"".join(pieces)


def _acting(asked: list[Asked]) -> list[tuple[Fault, Asked]]:
    return [(FAULTS[fault.name], fault) for fault in asked]


__all__ = ["Gateway", "Options", "Recording", "running"]
