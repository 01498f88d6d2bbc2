import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The port of an engine, which is not shared: another server on it would be taken for the engine. */

/** An engine that was just killed still has its port for a moment. */
const TRIES = 10
const POLL_MS = 100

export type TakenPort = { readonly release: () => void } | { readonly problem: string }

export async function takePort(port: number): Promise<TakenPort> {
  const release = await claim(port)
  if (!release)
    return { problem: `port ${port} on 127.0.0.1 is in use by an engine of another Weir service on this machine` }
  for (let tries = 0; tries < TRIES; tries++) {
    const probe = await listening({ host: '127.0.0.1', port })
    if (probe) {
      probe.close()
      await once(probe, 'close')
      return { release }
    }
    await sleep(POLL_MS)
  }
  release()
  return { problem: `port ${port} on 127.0.0.1 is in use by another process` }
}

/**
 * Until the engine listens, its port is free for others to see. So services show each other by an abstract socket which
 * ports they use; it ends with its process, even one that was killed. Only Linux has those.
 */
async function claim(port: number): Promise<(() => void) | undefined> {
  if (process.platform !== 'linux') return () => {}
  const server = await listening({ path: `\0weir-engine-${port}` })
  return server && (() => server.close())
}

async function listening(options: { path: string } | { host: string; port: number }) {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(options)
    await once(server, 'listening')
    return server
  } catch {
    return undefined
  }
}
