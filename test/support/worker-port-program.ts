/** A worker that serves its own process id and the caller's address, and nothing else of Weir. A request for /held is answered when the caller leaves. Serves HTTPS if it is given a certificate and a key. */
import { readCertificate } from '../../src/server/certificate.ts'
import { listen } from '../../src/server/server.ts'
import { portOf } from '../../src/cluster/workers/worker-port.ts'
import type { ListenFailure } from '../../src/cluster/workers/messages.ts'

const [, , host = '127.0.0.1', port = '0', cert, key] = process.argv
const listener = await listen(
  {
    async answer(exchange) {
      if (exchange.path === '/held') await new Promise<void>((resolve) => exchange.onGone(resolve))
      else exchange.sendJson(JSON.stringify({ pid: process.pid, address: exchange.address }))
    },
    rateOf: async () => undefined,
    headers: () => ({}),
    over() {},
  },
  host,
  Number(port),
  {
    openPort: portOf(1),
    requestMs: 500,
    checkMs: 50,
    tls: cert && key ? readCertificate({ cert, key }).tls : undefined,
  },
).catch(({ code, syscall, address, port }: ListenFailure) => {
  process.send?.({ failed: { code, syscall, address, port } })
})
process.once('SIGTERM', () => {
  void listener?.close(600_000).then(() => process.disconnect())
})
if (listener) process.send?.({ ready: listener.address.port })
