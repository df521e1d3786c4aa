"""`sluicegate emulate`: the emulated gateway as a server of its own."""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from decimal import Decimal, InvalidOperation
from typing import Any

import click


def _credits(context: click.Context, parameter: click.Parameter, value: str) -> Decimal:  # noqa: ARG001 - click's form
    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise click.BadParameter(f"{value!r} is not a number of credits") from None
    if not amount.is_finite() or amount < 0:
        raise click.BadParameter("credits are a number from 0")
    return amount


def _list_faults(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's form
    from proxy.emulator.faults.table import FAULTS

    if value:
        for fault in FAULTS.values():
            click.echo(f"{fault.name:<20}{fault.help}")
        context.exit()


@click.command()
@click.option("--listen", default="127.0.0.1:8790", show_default=True, metavar="HOST:PORT", help="Port 0 picks one.")
@click.option("--groups-listen", metavar="HOST:PORT", help="Serve the member-group service too.")
@click.option("--seed", default=1, show_default=True, help="Answers are a function of this and of the request.")
@click.option("--chunk-delay", default=0.0, show_default=True, metavar="S", help="Seconds between events of a stream.")
@click.option("--time-scale", default=1.0, show_default=True, help="60 makes a window of a minute last a second.")
@click.option("--amount-scale", default=1.0, show_default=True, help="Factor on every amount of the limits.")
@click.option("--window", type=click.Choice(["sliding", "fixed"]), default="sliding", show_default=True)
@click.option("--limits/--no-limits", default=True, show_default=True, help="Whether rate limits are kept.")
@click.option("--credits", default="1000", show_default=True, callback=_credits, help="What each member starts with.")
@click.option("--strict-slashes/--no-strict-slashes", default=True, show_default=True)
@click.option("--segment", default="partner", show_default=True, help="Path segment and header prefix, native routes.")
@click.option("--jobs-polls", default=2, show_default=True, help="Polls until a background job is done.")
@click.option("--fault", "faults", multiple=True, metavar="'NAME key=value'", help="Arm a fault; may be repeated.")
@click.option("--list-faults", is_flag=True, is_eager=True, expose_value=False, callback=_list_faults, help="And stop.")
def emulate(listen: str, groups_listen: str | None, chunk_delay: float, **given: Any) -> None:
    """Serve the emulated gateway until SIGTERM or SIGINT."""
    from proxy.emulator.options import Options

    host, port = _address(listen, "--listen")
    groups = None if groups_listen is None else _address(groups_listen, "--groups-listen")
    try:
        asyncio.run(_serve(Options(host=host, port=port, chunk_delay_s=chunk_delay, **given), groups))
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot listen on {listen}: {error.strerror}") from error


def _address(text: str, flag: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise click.BadParameter("give HOST:PORT", param_hint=flag)
    return host.strip("[]"), int(port)


async def _serve(options: Any, groups: tuple[str, int] | None) -> None:
    from proxy.emulator.accounts import KEYS
    from proxy.emulator.gateway import running
    from proxy.emulator.groups.accounts import access_token
    from proxy.emulator.groups.service import running_groups

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(running(options))
        keys = ", ".join(f"{key} ({member})" for key, member in KEYS.items())
        click.echo(f"emulated gateway on {gateway.url}, keys {keys}")
        if groups is not None:
            service = await stack.enter_async_context(running_groups(*groups))
            click.echo(f"emulated group service on {service.url}, x-access-token {access_token('master')}")
        sys.stdout.flush()
        await stop.wait()
