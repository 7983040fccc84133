# SPDX-License-Identifier: Apache-2.0
"""A server that returns the same bytes for every request, so that a benchmark measures only its client.

Run it as `python -m benchmarks.canned_server BODY_FILE [SECONDS]` with the delay of each response. It prints its port.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path


async def serve(body: bytes, seconds: float) -> None:
    """Serve `body`, each time after a delay in seconds, until the process ends."""
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    )

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).lower()
                _, _, rest = request.partition(b"content-length:")
                if rest:
                    await reader.readexactly(int(rest.partition(b"\r\n")[0]))
                if seconds:
                    await asyncio.sleep(seconds)
                writer.write(head + body)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]).read_bytes(), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))
