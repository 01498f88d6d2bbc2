import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that the system assigns to other processes, which could otherwise take one between two uses. */
const FIRST = 10_000
const PER_PROCESS = 128
const PROCESSES = 170

/** Test processes that run at the same time have different ports, because their process ids are close together. */
const first = FIRST + (process.pid % PROCESSES) * PER_PROCESS
let next = 0

/** A port without a listener. It stays free until this process uses it, also after a listener on it was closed. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PER_PROCESS; tried += 1) {
    const port = first + (next++ % PER_PROCESS)
    if (await isFree(port)) return port
  }
  throw new Error(`All ports from ${first} to ${first + PER_PROCESS - 1} are in use.`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
