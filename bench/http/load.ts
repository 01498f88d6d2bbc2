import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'undici'

/** Something in front of the engine that is called. */
export interface Target {
  readonly name: string
  readonly pid: number
  readonly pool: Pool
  readonly headers: Record<string, string>
  readonly path: string
}

/** About 1 KB. */
const chat = {
  model: 'bench/model',
  messages: [
    { role: 'system', content: 'You are a helpful assistant. '.repeat(8) },
    { role: 'user', content: 'Tell me about the river and its weir. '.repeat(18) },
  ],
}
const wholeBody = JSON.stringify(chat)
const streamBody = JSON.stringify({ ...chat, stream: true })

/** Calls once and returns the milliseconds until the whole answer was there. Throws if it is not the answer. */
export async function chatCall({ name, pool, path, headers }: Target, stream: boolean): Promise<number> {
  const begun = performance.now()
  const body = stream ? streamBody : wholeBody
  const response = await pool.request({ method: 'POST', path, headers, body, headersTimeout: 30_000 })
  const text = await response.body.text()
  if (response.statusCode !== 200 || (stream && !text.includes('[DONE]'))) {
    throw new Error(`${name}: ${response.statusCode} ${text}`)
  }
  return performance.now() - begun
}

/** `count` calls, `rate` of them a second. */
export async function paced(one: () => Promise<void>, count: number, rate: number): Promise<void> {
  const started = performance.now()
  const running: Promise<void>[] = []
  const failures: unknown[] = []
  for (let sent = 0; sent < count && failures.length === 0;) {
    const due = Math.min(count, Math.ceil(((performance.now() - started) / 1000) * rate))
    while (sent < due) {
      running.push(one().catch((error: unknown) => void failures.push(error)))
      sent++
    }
    await sleep(1)
  }
  await Promise.all(running)
  if (failures.length > 0) throw failures[0]
}

/** `count` calls, so many at a time. */
export async function saturated(one: () => Promise<void>, count: number, atATime: number): Promise<void> {
  let left = count
  await callers(atATime, one, () => left-- > 0)
}

/** Calls for some time, so many at a time. */
export async function during(ms: number, one: () => Promise<void>, atATime: number): Promise<void> {
  const until = performance.now() + ms
  await callers(atATime, one, () => performance.now() < until)
}

async function callers(atATime: number, one: () => Promise<void>, goesOn: () => boolean): Promise<void> {
  const state = { hasFailed: false }
  const caller = async (): Promise<void> => {
    while (!state.hasFailed && goesOn()) await one()
  }
  const all = Array.from({ length: atATime }, caller)
  await Promise.all(all).catch(async (error: unknown) => {
    // What the others still ask for would disturb the next measurement.
    state.hasFailed = true
    await Promise.allSettled(all)
    throw error
  })
}
