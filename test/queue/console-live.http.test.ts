import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({
    rate_limit: { requests_per_minute: 10_000, unauthenticated_per_minute: 10_000 },
    models: [modelEntry([engine.url], { name: 'Größe 8B' })],
  })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

async function signIn(key: string): Promise<string> {
  const response = await fetch(`${weir.service.url}/console/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
    body: JSON.stringify({ key }),
  })
  return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
}

interface Received {
  readonly id: string
  readonly at: number
  readonly models: {
    readonly model: string
    readonly in_flight_requests: number
    readonly wait_ms_p95: number | null
  }[]
}

/** The events of a stream, until `count` have arrived or it has ended. */
async function follow(cookie: string, lastId?: string) {
  const leave = new AbortController()
  const response = await fetch(`${weir.service.url}/console/api/live`, {
    headers: { cookie, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
    signal: leave.signal,
  })
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader() ?? assert.fail()
  const received: Received[] = []
  let rest = ''
  async function next(): Promise<Received | undefined> {
    for (;;) {
      const waiting = received.shift()
      if (waiting) return waiting
      const { done, value } = await reader.read()
      if (done) return undefined
      const events = (rest + value).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const match = /^id: (.+)\nevent: sample\ndata: (.+)$/.exec(event)
        if (match) received.push({ id: match[1] ?? '', ...(JSON.parse(match[2] ?? '') as Omit<Received, 'id'>) })
      }
    }
  }
  return { next, leave: () => leave.abort() }
}

describe('the live stream of the console', () => {
  it('sends the load of the models, and what a browser missed when it reconnects', async () => {
    const cookie = await signIn(weir.key)
    const held = Promise.withResolvers<void>()
    engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: held.promise } }
    const stream = await follow(cookie)
    const chat = weir.chat({ stream: true }).then((response) => response.text())
    await engine.arrived(1)
    let sample = await stream.next()
    while (sample && sample.models[0]?.in_flight_requests !== 1) sample = await stream.next()
    assert.equal(sample?.models[0]?.wait_ms_p95, 0, 'its wait is known from its admission on')
    stream.leave()
    held.resolve()
    await chat

    // A second browser has seen the first samples, and reconnects with the id of the last one.
    const other = await follow(cookie)
    let newest = await other.next()
    const isOver = ({ models: [model] }: Received): boolean =>
      model?.wait_ms_p95 !== null && model?.in_flight_requests === 0
    while (newest && !isOver(newest)) newest = await other.next()
    other.leave()
    const again = await follow(cookie, sample.id)
    const ids: string[] = []
    for (let it = await again.next(); it; it = await again.next()) {
      ids.push(it.id)
      if (it.id === newest?.id) break
    }
    again.leave()
    assert.ok(!ids.includes(sample.id), 'nothing comes twice')
    assert.equal(ids.at(-1), newest?.id, 'nothing is missing')
  })

  it('ends when the key of its session is revoked', async () => {
    const made = (await (await weir.admin('POST', '/admin/v1/keys', { workspace: 'default' })).json()) as {
      id: string
      key: string
    }
    const stream = await follow(await signIn(made.key))
    await stream.next()
    await weir.admin('DELETE', `/admin/v1/keys/${made.id}`)
    const revokedAt = Date.now()
    // An earlier sample may still be on its way.
    for (let sample = await stream.next(); sample; sample = await stream.next()) {
      assert.ok(sample.at <= revokedAt, 'it goes on')
    }
  })

  it('does not keep the service from stopping', async () => {
    const own = await startWeir({ models: [modelEntry([engine.url])] })
    const response = await fetch(`${own.service.url}/console/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
      body: JSON.stringify({ key: own.key }),
    })
    const cookie = (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const stream = await fetch(`${own.service.url}/console/api/live`, { headers: { cookie } })
    const ended = stream.text()
    const started = performance.now()
    await own.stop()
    await ended
    assert.ok(performance.now() - started < 25_000, 'it did not wait for the drain of 30 s')
  })
})
