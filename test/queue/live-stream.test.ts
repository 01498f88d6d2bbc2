import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/shared/errors.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { liveStreams } from '../../src/queue/routes/live-stream.ts'
import type { LiveFeed, Sample } from '../../src/queue/live.ts'
import { looseExchange, type ScriptedResponse } from '../support/exchange-listener.ts'
import { turn } from '../support/hand-clock.ts'

const OF_OWNER_MAX = 50
const MAX = 1000

function sampleOf(number: number): Sample {
  return { id: `start-${number}`, at: number, lanes: new Map(), waits: new Map(), admitted: new Map() }
}

function stage(kept: readonly Sample[] = []) {
  const subscribed = new Set<{ take(sample: Sample): void; closed(): void }>()
  const asked: (string | undefined)[] = []
  const feed: LiveFeed = {
    since(id) {
      asked.push(id)
      return kept
    },
    subscribe(take, closed) {
      const it = { take, closed }
      subscribed.add(it)
      return () => void subscribed.delete(it)
    },
    admitted() {},
    close() {
      for (const { closed } of subscribed) closed()
    },
  }
  const streams = liveStreams(feed)
  const open = (owner: string, changes: Partial<Opening> = {}): Opening => {
    const response = changes.response ?? {}
    const exchange = looseExchange('GET', response)
    Object.assign(exchange.request.headers, changes.headers)
    const session = changes.session ?? { isAllowed: async () => true }
    const opening: Opening = { exchange, response, session, end: undefined }
    streams
      .send(exchange, { owner, isAllowed: () => session.isAllowed(), view: ({ at }) => ({ at, name: 'Zoë' }) })
      .then(
        () => (opening.end = 'ended'),
        (error: unknown) => (opening.end = error),
      )
    return opening
  }
  return {
    feed,
    asked,
    subscribed,
    open,
    /** Whether the service accepts another stream of this owner. That stream then ends. */
    async takes(owner: string): Promise<boolean> {
      const { exchange, end } = await settled(open(owner))
      exchange.leave()
      await turn()
      if (end === undefined) return true
      assert.ok(end instanceof ApiError && end.code === 'service_unavailable' && end.retryAfter === 2)
      return false
    },
    async give(sample: Sample): Promise<void> {
      for (const { take } of subscribed) take(sample)
      await turn()
    },
  }
}

interface Opening {
  readonly exchange: Exchange
  readonly response: ScriptedResponse
  readonly session: { isAllowed(): Promise<boolean> }
  readonly headers?: Readonly<Record<string, string>>
  end: unknown
}

async function settled(opening: Opening): Promise<Opening> {
  await turn()
  return opening
}

describe('the number of live streams', () => {
  it(`is ${OF_OWNER_MAX} for one owner, and falls with each that ends, however it ends`, async () => {
    const { open, takes, feed, give, subscribed } = stage()
    const session = { isAllowed: async () => true }
    const openings = Array.from({ length: OF_OWNER_MAX }, () => open('one', { session }))
    assert.ok(openings.every(({ end }) => end === undefined))
    assert.equal(await takes('one'), false)
    assert.equal(await takes('two'), true)
    for (let round = 0; round < 3; round++) {
      openings.pop()?.exchange.leave()
      await turn()
      assert.equal(await takes('one'), true, 'the browser has left')
      openings.push(open('one', { session }))
      assert.equal(await takes('one'), false)
    }
    session.isAllowed = async () => false
    await give(sampleOf(1))
    assert.ok(openings.every(({ end }) => end === 'ended'))
    for (let count = 0; count < OF_OWNER_MAX; count++) open('one')
    assert.equal(await takes('one'), false)
    feed.close()
    await turn()
    assert.equal(subscribed.size, 0)
    for (let count = 0; count < OF_OWNER_MAX; count++) open('one')
    assert.equal(await takes('one'), false)
  })

  it('counts those that stay when one of few ends', async () => {
    const { open, takes } = stage()
    const [first] = [open('one'), open('one')]
    first?.exchange.leave()
    await turn()
    for (let count = 1; count < OF_OWNER_MAX; count++) open('one')
    assert.equal(await takes('one'), false)
  })

  it(`is ${MAX} for all owners together, and falls with each that ends`, async () => {
    const { open, takes } = stage()
    const openings = Array.from({ length: MAX }, (_, index) => open(`owner ${index % 40}`))
    await turn()
    assert.ok(openings.every(({ end }) => end === undefined))
    assert.equal(await takes('another'), false)
    openings[0]?.exchange.leave()
    await turn()
    assert.equal(await takes('another'), true)
    const last = open('another')
    assert.equal(await takes('yet another'), false)
    for (const { exchange } of [...openings, last]) exchange.leave()
    await turn()
    for (let index = 0; index < MAX; index++) open(`owner ${index % 40}`)
    assert.equal(await takes('another'), false)
  })
})

describe('a live stream', () => {
  it('starts with the samples that the browser has missed, and continues with each sample', async () => {
    const written: string[] = []
    const heads: unknown[] = []
    const response: ScriptedResponse = {
      writeHead: (status, headers) => void heads.push([status, headers['Content-Type']]),
      write: (text) => written.push(String(text)) > 0,
    }
    const { open, give, asked } = stage([sampleOf(1), sampleOf(2)])
    open('one', { response })
    await give(sampleOf(3))
    assert.deepEqual(asked, [undefined])
    assert.deepEqual(heads, [[200, 'text/event-stream; charset=utf-8']])
    assert.deepEqual(written, [
      'retry: 2000\n\n',
      ...[1, 2, 3].map((at) => `id: start-${at}\nevent: sample\ndata: {"at":${at},"name":"Zo\\u00eb"}\n\n`),
    ])
  })

  it('requests the samples after the last one that the browser has received', () => {
    const { open, asked } = stage()
    open('one', { headers: { 'last-event-id': 'start-7' } })
    assert.deepEqual(asked, ['start-7'])
  })

  it('sends nothing after its end, which is reported once', async () => {
    const written: string[] = []
    let ends = 0
    const response: ScriptedResponse = { write: (text) => written.push(String(text)) > 0, end: () => void ends++ }
    const late = Promise.withResolvers<boolean>()
    const session = { isAllowed: () => late.promise }
    const { open, feed, give } = stage()
    const opening = open('one', { response, session })
    await give(sampleOf(1))
    await give(sampleOf(2))
    feed.close()
    late.resolve(false)
    await turn()
    assert.deepEqual([opening.end, ends, written.length], ['ended', 1, 1])
    const other = open('one', { response, session: { isAllowed: async () => true } })
    const sent = give(sampleOf(3))
    other.exchange.leave()
    await sent
    assert.deepEqual([other.end, written.length], ['ended', 2])
  })

  it('skips samples while the browser is slow, and continues when it has caught up', async () => {
    let flows = true
    const written: string[] = []
    const response: ScriptedResponse = {
      writableLength: 1,
      write(text) {
        written.push(String(text))
        return flows
      },
    }
    const { open, give } = stage()
    open('one', { response })
    flows = false
    await give(sampleOf(1))
    await give(sampleOf(2))
    flows = true
    response.drained?.()
    await give(sampleOf(3))
    assert.deepEqual(
      written.flatMap((text) => /id: start-(\d)/.exec(text)?.[1] ?? []),
      ['1', '3'],
    )
  })

  it('stays open while the session cannot be looked up', async () => {
    const session = { isAllowed: (): Promise<boolean> => Promise.reject(new Error('no database')) }
    const { open, give, subscribed } = stage()
    const opening = open('one', { session })
    await give(sampleOf(1))
    assert.deepEqual([opening.end, subscribed.size], [undefined, 1])
    session.isAllowed = async () => false
    await give(sampleOf(2))
    assert.deepEqual([opening.end, subscribed.size], ['ended', 0])
  })

  it('of a browser that disconnects at once ends, and frees its place', async () => {
    const { open, subscribed, takes } = stage()
    for (let count = 0; count < OF_OWNER_MAX; count++) {
      const response: ScriptedResponse = {}
      const opening = open('one', { response })
      opening.exchange.leave()
      await turn()
      assert.equal(opening.end, 'ended')
    }
    assert.equal(subscribed.size, 0)
    assert.equal(await takes('one'), true)
  })
})
