/** A worker that serves its own process id and the caller's address, and nothing else of Weir. Whoever asks for /held waits until it leaves. */
import { listen } from '../../src/http/server.ts'
import { portOf } from '../../src/workers/handed-port.ts'
import type { ListenFailure } from '../../src/workers/messages.ts'

const listener = await listen(
  {
    async answer(exchange) {
      if (exchange.path === '/held') await new Promise<void>((resolve) => exchange.onGone(resolve))
      else exchange.sendJson(JSON.stringify({ pid: process.pid, address: exchange.address }))
    },
    look: async () => undefined,
    headers: () => ({}),
    over() {},
  },
  process.argv[2] ?? '127.0.0.1',
  Number(process.argv[3] ?? 0),
  { openPort: portOf(1), requestMs: 500, lookMs: 50 },
).catch(({ code, syscall, address, port }: ListenFailure) => {
  process.send?.({ failed: { code, syscall, address, port } })
})
process.once('SIGTERM', () => {
  void listener?.close(600_000).then(() => process.disconnect())
})
if (listener) process.send?.({ ready: listener.address.port })
