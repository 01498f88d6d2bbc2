import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chatStage } from '../support/chat-stage.ts'
import { laneHolds } from '../support/lane.ts'
import { rawChat, rawClient, type RawClient } from '../support/raw-client.ts'
import { gate } from '../support/waiting.ts'

const FIVE_MINUTES_MS = 5 * 60_000

/** Five minutes in which not a byte comes, and the connection stays. */
async function requireSilence(callers: readonly RawClient[]): Promise<void> {
  const until = performance.now() + FIVE_MINUTES_MS
  while (performance.now() < until) {
    await sleep(1000)
    for (const { received, isClosed } of callers) assert.deepEqual([received, isClosed], ['', false])
  }
}

describe('a hold of five minutes', { concurrency: true }, () => {
  it('[Q10][Q3] in the queue ends in a normal answer, whole or streamed, with nothing sent before', async (t) => {
    const held = gate()
    t.after(held.open)
    const { weir, engine } = await chatStage(t, {
      script: { hold: { afterTokens: 0, until: held.opened } },
      engine: { idle_timeout_ms: 600_000 },
      limits: { max_concurrent_requests: 1, max_wait_ms: 330_000 },
    })
    // Not with fetch, which gives up after five minutes without an answer.
    const running = await rawClient(weir.base)
    running.send(rawChat(weir.key, { stream: true }))
    await laneHolds(weir, 1, 0)
    const whole = await rawClient(weir.base)
    whole.send(rawChat(weir.key, {}))
    await laneHolds(weir, 1, 1)
    const streamed = await rawClient(weir.base)
    streamed.send(rawChat(weir.key, { stream: true }))
    await laneHolds(weir, 1, 2)

    await requireSilence([whole, streamed])
    await laneHolds(weir, 1, 2)
    held.open()
    await running.sees('data: [DONE]')
    await whole.sees('"object":"chat.completion"')
    await streamed.sees('data: [DONE]')
    for (const { received } of [whole, streamed]) {
      assert.match(received, /^HTTP\/1\.1 200 OK\r\n/)
      const waitMs = Number(/\r\nX-Queue-Wait-Ms: (\d+)\r\n/.exec(received)?.[1])
      assert.ok(waitMs >= FIVE_MINUTES_MS && waitMs < 330_000, `waited ${waitMs} ms`)
    }
    assert.equal(engine.calls.length, 3)
    for (const client of [running, whole, streamed]) client.leave()
  })

  it('[Q10] for an engine that thinks before its first byte ends in a normal answer', async (t) => {
    const { weir } = await chatStage(t, { script: { firstByteMs: FIVE_MINUTES_MS + 2000 } })
    const callers = [await rawClient(weir.base), await rawClient(weir.base)]
    for (const [index, caller] of callers.entries()) caller.send(rawChat(weir.key, { stream: index === 1 }))
    await requireSilence(callers)
    await callers[0]?.sees('"object":"chat.completion"')
    await callers[1]?.sees('data: [DONE]')
    for (const { received } of callers) assert.match(received, /^HTTP\/1\.1 200 OK\r\n/)
    for (const caller of callers) caller.leave()
  })
})
