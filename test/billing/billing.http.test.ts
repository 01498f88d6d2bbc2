import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { noUsage } from '../../src/billing/rating/rating.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { openJournal } from '../../src/ledger/journal/journal.ts'
import { audioStage, clip, transcriptions } from '../support/audio-stage.ts'
import { stageConfig, type ChatStage } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { laneHolds } from '../support/lane.ts'
import { rawChat, rawClient, rawPost } from '../support/raw-client.ts'
import { memoryJournal } from '../support/memory-journal.ts'
import { s3Secrets, s3Stub } from '../support/s3-stub.ts'
import { transcription } from '../support/speech-engine.ts'
import { scriptedEngine, type Script } from '../support/scripted-engine.ts'
import { eventually, gate } from '../support/waiting.ts'
import { modelEntry, readEvents, startWeir, type TestWeir } from '../support/weir.ts'

/** Checks every case of docs/billing.md against the engine's own count. */

const INPUT = 200_000n
const CACHED = 50_000n
const OUTPUT = 600_000n

/** Waits for a row to be settled and checks that it is the only one. */
async function onlyRow(weir: TestWeir): Promise<LedgerRow> {
  let rows: readonly LedgerRow[] = []
  await eventually('a row is settled', async () => (rows = await weir.ledger()).length > 0)
  assert.equal(rows.length, 1)
  return rows[0]!
}

function billed(row: LedgerRow): object {
  const { outcome, inputTokens, cachedInputTokens, outputTokens, estimated, amount } = row
  return { outcome, tokens: [inputTokens, cachedInputTokens, outputTokens], estimated, amount }
}

const nothing = (outcome: string): object => ({ outcome, tokens: [0, 0, 0], estimated: false, amount: 0n })

/** Sends a request and disconnects once `seen` has arrived, or, if null, once the engine has the request. */
async function leaveAfter({ weir, engine }: ChatStage, body: object, seen: string | null): Promise<void> {
  const client = await rawClient(weir.base)
  client.send(rawChat(weir.key, body))
  if (seen === null) await engine.arrived(1)
  else await client.sees(seen)
  client.leave()
  await engine.left(1)
}

describe('billing: a request that never reached an engine', () => {
  it('leaves no row when it is rejected, whatever the reason', async (t) => {
    const { opened, open } = gate()
    const limits = { max_concurrent_requests: 1, max_queue_depth: 0 }
    const { weir, engine } = await sharedStage(t, { limits, script: { hold: { afterTokens: 0, until: opened } } })
    const first = weir.chat({})
    await engine.arrived(1)
    const refused = [
      await weir.chat({}, { key: null }),
      await weir.chat({ model: 'meta/none' }),
      await weir.chat({ temperature: 9 }),
      await weir.chat({ max_tokens: 4000, messages: [{ role: 'user', content: 'x '.repeat(40_000) }] }),
      await weir.chat({}),
    ]
    assert.deepEqual(
      refused.map(({ status }) => status),
      [401, 404, 400, 400, 429],
    )
    open()
    await (await first).text()
    assert.equal((await weir.ledger()).length, 1)
  })

  it('leaves no row when the caller disconnects while it is queued', async (t) => {
    const { opened, open } = gate()
    const limits = { max_concurrent_requests: 1 }
    const { weir, engine } = await sharedStage(t, { limits, script: { hold: { afterTokens: 0, until: opened } } })
    const first = weir.chat({})
    await engine.arrived(1)
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, {}))
    const depth = async (): Promise<number> => {
      const { data } = (await (await weir.call('/queue/status')).json()) as { data: { queue_depth: number }[] }
      return data[0]?.queue_depth ?? 0
    }
    await eventually('it is queued', async () => (await depth()) === 1)
    client.leave()
    await eventually('it left', async () => (await depth()) === 0)
    open()
    await (await first).text()
    assert.equal((await weir.ledger()).length, 1)
  })
})

describe('billing: nothing is charged when the engine fails before it produces output', () => {
  const reset = (_call: unknown, response: ServerResponse): void => void response.destroy()
  const garbled = (_call: unknown, response: ServerResponse): void => void response.writeHead(200).end('<html>')
  const cases = {
    'it refuses': { refuse: { status: 500, body: {} } },
    'it closes the connection': { handle: reset },
    'it sends something that is not an answer': { handle: garbled },
    'it breaks off while sending an answer that is not streamed': { breakAfter: { tokens: 1, how: 'reset' } },
  } as const
  for (const [what, script] of Object.entries(cases)) {
    for (const stream of [false, true]) {
      if (stream && 'breakAfter' in script) continue
      it(`${what}${stream ? ', streaming' : ''}`, async (t) => {
        const { weir } = await sharedStage(t, { script })
        const response = await weir.chat({ stream })
        assert.equal(response.status, 502)
        await response.text()
        assert.deepEqual(billed(await onlyRow(weir)), nothing('engine_failed'))
      })
    }
  }

  for (const how of ['reset', 'clean end'] as const) {
    it(`it streams only the role, then ends with a ${how}`, async (t) => {
      const script = { breakAfter: { tokens: 0, how }, continuousUsage: true }
      const { weir } = await sharedStage(t, { script })
      await (await weir.chat({ stream: true })).text()
      assert.deepEqual(billed(await onlyRow(weir)), nothing('engine_failed'))
    })
  }
})

describe('billing: an incomplete stream costs what the engine had produced', () => {
  const tokens = ['a', 'b', 'c', 'd', 'e']
  for (const produced of [1, 3, 5]) {
    for (const how of ['reset', 'clean end'] as const) {
      it(`the engine ends it with a ${how} after ${produced} tokens`, async (t) => {
        const breakAfter = { tokens: produced, how }
        const script = {
          tokens: [...tokens, 'f'],
          breakAfter,
          promptTokens: 20,
          cachedTokens: 5,
          continuousUsage: true,
        }
        const { weir, engine } = await sharedStage(t, { script })
        await (await weir.chat({ stream: true })).text()
        assert.equal(engine.calls[0]?.tokensProduced, produced)
        assert.deepEqual(billed(await onlyRow(weir)), {
          outcome: 'engine_broke',
          tokens: [20, 5, produced],
          estimated: false,
          amount: 15n * INPUT + 5n * CACHED + BigInt(produced) * OUTPUT,
        })
      })
    }

    for (const continuousUsage of [true, false]) {
      const counted = continuousUsage ? 'counted by the engine' : 'not counted by the engine'
      it(`the caller disconnects after ${produced} tokens, ${counted}`, async (t) => {
        const hold = { afterTokens: produced, until: gate().opened }
        const script = { tokens: [...tokens, 'f'], hold, promptTokens: 20, continuousUsage }
        const stage = await sharedStage(t, { script })
        await leaveAfter(stage, { stream: true }, `"${tokens[produced - 1]}"`)
        const row = await onlyRow(stage.weir)
        assert.equal(row.outcome, 'caller_left')
        assert.equal(row.outputTokens, stage.engine.calls[0]?.tokensProduced)
        assert.equal(row.estimated, !continuousUsage)
        if (continuousUsage) assert.equal(row.inputTokens, 20)
        else assert.ok(row.inputTokens > 0)
        assert.equal(row.amount, BigInt(row.inputTokens) * INPUT + BigInt(produced) * OUTPUT)
      })
    }
  }

  it('the caller disconnects before the first token, after the engine counted the input', async (t) => {
    const script = { hold: { afterTokens: 0, until: gate().opened }, promptTokens: 20, continuousUsage: true }
    const stage = await sharedStage(t, { script })
    await leaveAfter(stage, { stream: true }, 'assistant')
    assert.deepEqual(billed(await onlyRow(stage.weir)), {
      outcome: 'caller_left',
      tokens: [20, 0, 0],
      estimated: false,
      amount: 20n * INPUT,
    })
  })

  it('the engine counts once and then breaks: its count plus the later deltas, as an estimate', async (t) => {
    const { weir } = await sharedStage(t, { script: { handle: countsOnce } })
    await (await weir.chat({ stream: true })).text()
    assert.deepEqual(billed(await onlyRow(weir)), {
      outcome: 'engine_broke',
      tokens: [20, 0, 3],
      estimated: true,
      amount: 20n * INPUT + 3n * OUTPUT,
    })
  })
})

function countsOnce(_call: unknown, response: ServerResponse): void {
  const usage = { prompt_tokens: 20, completion_tokens: 1 }
  const chunk = (content: string, more: object = {}): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more })}\n\n`
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(chunk('a', { usage }) + chunk('b') + chunk('c'))
}

/** Takes a call and never answers. */
function silently(_call: unknown, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => response.once('close', () => resolve()))
}

describe('billing: the caller disconnects before the engine has answered', () => {
  for (const stream of [false, true]) {
    it(`is charged the estimated input${stream ? ', streaming' : ''}`, async (t) => {
      const stage = await sharedStage(t, { script: { handle: silently } })
      await leaveAfter(stage, { stream, messages: [{ role: 'user', content: 'word '.repeat(1000) }] }, null)
      const row = await onlyRow(stage.weir)
      assert.deepEqual([row.outcome, row.estimated, row.outputTokens], ['caller_left', true, 0])
      assert.ok(row.inputTokens > 100 && row.inputTokens < 1300, `${row.inputTokens} tokens`)
      assert.equal(row.amount, BigInt(row.inputTokens) * INPUT)
    })
  }

  it('is charged nothing while no engine could be reached', async (t) => {
    // It accepts connections and never answers the TLS handshake, so that nothing of a request reaches it.
    const connections = new Set<Socket>()
    const mute = createServer((socket) => void connections.add(socket.on('error', () => {})))
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    const url = `https://127.0.0.1:${(mute.address() as AddressInfo).port}/v1`
    const weir = await startWeir(stageConfig([url]))
    t.after(async () => {
      for (const socket of connections) socket.destroy()
      await weir.stop()
      mute.close()
    })
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { messages: [{ role: 'user', content: 'word '.repeat(1000) }] }))
    await laneHolds(weir, 1, 0)
    await eventually('there is a connection for the probe and one for the call', () => connections.size === 2)
    client.leave()
    assert.deepEqual(billed(await onlyRow(weir)), nothing('caller_left'))
    await laneHolds(weir, 0, 0)
  })
})

describe('billing: the caller disconnects from an image generation', () => {
  const PRICE = 40_000_000_000n

  /** Images by link, so that the test can act between the end of the engine call and the delivery. */
  async function imageStage(t: TestContext, script: Script) {
    const [engine, bucket] = [await scriptedEngine(), await s3Stub()]
    engine.script = script
    const { access, secret, region } = s3Secrets
    const weir = await startWeir(
      {
        models: [modelEntry([engine.url], { id: 'sd/x', categories: ['image'], pricing: { per_image: '0.04' } })],
        files: {
          kind: 's3',
          endpoint: bucket.url,
          bucket: 'pictures',
          region,
          access_key_env: 'KEY',
          secret_key_env: 'SECRET',
        },
      },
      { KEY: access, SECRET: secret },
    )
    t.after(async () => {
      await weir.stop()
      await engine.close()
      await bucket.close()
    })
    const delivery = gate()
    bucket.until = delivery.opened
    const client = await rawClient(weir.base)
    const body = { model: 'sd/x', prompt: 'A weir', n: 3, response_format: 'url' }
    client.send(rawPost('/api/v1/images/generations', weir.key, body))
    return { weir, engine, bucket, client, delivery }
  }

  const billedImages = ({ outcome, images, estimated, amount }: LedgerRow): object => ({
    outcome,
    images,
    estimated,
    amount,
  })

  it('is charged every image that the engine had finished', async (t) => {
    const { weir, bucket, client, delivery } = await imageStage(t, {})
    await eventually('the images are made', () => bucket.arrived === 1)
    client.leave()
    await client.closed()
    // Once a later request is answered, the service has noticed the disconnect.
    await (await weir.call('/queue/status')).text()
    delivery.open()
    assert.deepEqual(billedImages(await onlyRow(weir)), {
      outcome: 'caller_left',
      images: 3,
      estimated: false,
      amount: 3n * PRICE,
    })
  })

  it('is charged nothing while the engine is still working', async (t) => {
    const hold = { afterTokens: 0, until: gate().opened }
    const { weir, engine, client } = await imageStage(t, { hold })
    await engine.arrived(1)
    client.leave()
    await engine.left(1)
    const row = await onlyRow(weir)
    assert.deepEqual([row.outcome, row.images, row.amount], ['caller_left', 0, 0n])
  })
})

describe('billing: the caller disconnects from a transcription', () => {
  it('is charged the whole length of the recording, which is measured and not an estimate', async (t) => {
    const { weir, engine } = await audioStage(t)
    engine.answer = async () => {
      await gate().opened
      return { body: transcription }
    }
    const form = new FormData()
    form.append('model', 'whisper-1')
    form.append('file', new Blob([new Uint8Array(clip('flac.ogg'))]))
    const abort = new AbortController()
    const answer = weir.call(transcriptions, { method: 'POST', body: form, signal: abort.signal })
    await eventually('the engine has the upload', () => engine.calls.length === 1)
    abort.abort()
    await assert.rejects(answer)
    const left = await onlyRow(weir)
    engine.answer = () => ({ body: transcription })
    form.set('file', new Blob([new Uint8Array(clip('flac.ogg'))]))
    assert.equal((await weir.call(transcriptions, { method: 'POST', body: form })).status, 200)
    const completed = (await weir.ledger()).find(({ outcome }) => outcome === 'completed')
    assert.ok(left.audioMs > 0)
    assert.deepEqual(
      [left.outcome, left.audioMs, left.amount, left.estimated],
      ['caller_left', completed?.audioMs, completed?.amount, false],
    )
  })
})

describe('billing: usage is estimated, and marked so, when the engine reports none', () => {
  it('an answer reports the usage of its row', async (t) => {
    const { weir } = await sharedStage(t, { script: { silentUsage: true, tokens: ['a rather long answer'] } })
    const { usage } = (await (await weir.chat({})).json()) as { usage: Record<string, number> }
    await matches(t, weir, usage)
  })

  it('a stream reports the usage of its row', async (t) => {
    const { weir } = await sharedStage(t, { script: { silentUsage: true } })
    const events = await readEvents(await weir.chat({ stream: true, stream_options: { include_usage: true } }))
    const { usage } = JSON.parse(events.at(-2)!) as { usage: Record<string, number> }
    await matches(t, weir, usage)
  })

  async function matches(_t: TestContext, weir: TestWeir, usage: Record<string, number>): Promise<void> {
    const row = await onlyRow(weir)
    assert.deepEqual([row.outcome, row.estimated], ['completed', true])
    assert.ok(row.inputTokens > 0 && row.outputTokens > 0 && row.amount > 0n)
    assert.deepEqual([usage['prompt_tokens'], usage['completion_tokens']], [row.inputTokens, row.outputTokens])
  }
})

describe('billing: every request is charged once', () => {
  it('however many engines were tried', async (t) => {
    const engines = [await scriptedEngine(), await scriptedEngine(), await scriptedEngine()]
    const script = { promptTokens: 30, tokens: ['a', 'b'] }
    // The first engine that is called refuses, whichever it is; the second answers.
    let attempts = 0
    for (const engine of engines) {
      engine.script = () => (++attempts < 2 ? { refuse: { status: 500, body: {} } } : script)
    }
    const weir = await startWeir(stageConfig(engines.map(({ url }) => url)))
    t.after(async () => {
      await weir.stop()
      await Promise.all(engines.map((engine) => engine.close()))
    })
    assert.equal((await weir.chat({})).status, 200)
    assert.equal(attempts, 2)
    assert.deepEqual(billed(await onlyRow(weir)), {
      outcome: 'completed',
      tokens: [30, 0, 2],
      estimated: false,
      amount: 30n * INPUT + 2n * OUTPUT,
    })
  })

  it('[M5] cached input tokens count once, however many choices a stream has', async (t) => {
    const { weir } = await sharedStage(t, {
      script: {
        handle(_call, response) {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          for (const index of [0, 1, 2]) {
            const usage = {
              prompt_tokens: 100,
              completion_tokens: 1,
              prompt_tokens_details: { cached_tokens: 40 },
            }
            const choice = { index, delta: { content: 'a' }, finish_reason: 'stop' }
            response.write(`data: ${JSON.stringify({ choices: [choice], usage })}\n\n`)
          }
          response.end('data: [DONE]\n\n')
        },
      },
    })
    const body = { stream: true, n: 3, stream_options: { include_usage: true } }
    const events = await readEvents(await weir.chat(body))
    const { usage } = JSON.parse(events.at(-2)!) as { usage: Record<string, unknown> }
    assert.deepEqual(usage['prompt_tokens_details'], { cached_tokens: 40 })
    assert.deepEqual(billed(await onlyRow(weir)), {
      outcome: 'completed',
      tokens: [100, 40, 3],
      estimated: false,
      amount: 60n * INPUT + 40n * CACHED + 3n * OUTPUT,
    })
  })

  it('[M5] cached input tokens count once, at their own rate', async (t) => {
    const { weir } = await sharedStage(t, { script: { promptTokens: 100, cachedTokens: 40, tokens: ['a'] } })
    await (await weir.chat({})).text()
    const { amount } = await onlyRow(weir)
    assert.equal(amount, 60n * INPUT + 40n * CACHED + OUTPUT)
  })
})

describe('billing: nothing is charged when the service itself is at fault', () => {
  it('a shutdown cuts a stream off', async (t) => {
    const engine = await scriptedEngine()
    engine.script = { hold: { afterTokens: 2, until: gate().opened }, continuousUsage: true }
    const config = stageConfig([engine.url], { config: { server: { port: 0, admin_port: 0, drain_ms: 1 } } })
    const weir = await startWeir(config)
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true }))
    await client.sees('there')
    await weir.service.stop()
    assert.deepEqual(billed((await weir.ledger())[0]!), nothing('interrupted'))
  })

  it('an answer is withheld because it could not be recorded', async () => {
    let now = 0
    let broken = true
    const { files, rows } = memoryJournal(() => {
      now += 6000
      return broken ? new Error('the disk is full') : null
    })
    const clock = { now: () => now, monotonic: () => now }
    const journal = openJournal({ files, firstSegment: 1, clock, grew() {} })
    const row = { requestId: 'a', outcome: 'completed', amount: 7n } as LedgerRow
    await assert.rejects(journal.settle(row, () => ({ ...row, ...noUsage, outcome: 'withheld', amount: 0n })))
    broken = false
    await journal.flush()
    assert.deepEqual(
      rows().map(({ outcome, amount }) => [outcome, amount]),
      [['withheld', 0n]],
    )
  })
})
