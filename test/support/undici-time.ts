import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import { eventually } from './waiting.ts'

/** undici measures its time limits with a clock of its own, in steps of half a second. */
const clock = createRequire(import.meta.url)('undici/lib/util/timers.js') as { tick(ms: number): void }

/** The code of the error, or its message, of a request that undici gives up after this time, and not after half of it. Does not wait for the time to pass. */
export async function givenUpAfter(ms: number, request: Promise<unknown>): Promise<string> {
  const failures: NodeJS.ErrnoException[] = []
  request.catch((error: Error) => void failures.push(error))
  // Time counts for a limit from the first step after it was set.
  clock.tick(1000)
  // Time that really passes counts too, so half of the limit is left for that.
  clock.tick(0.5 * ms - 1000)
  for (let turn = 0; turn < 10; turn++) await setImmediate()
  assert.equal(failures.length, 0, 'it is given up too early')
  clock.tick(0.5 * ms + 1000)
  await eventually(`it is given up after ${ms} ms`, () => failures.length > 0)
  return failures[0]?.code ?? failures[0]?.message ?? ''
}
