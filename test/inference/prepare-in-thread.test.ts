import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { parseCatalog } from '../../src/catalog/file.ts'
import { type ApiError, CallerLeft } from '../../src/shared/errors.ts'
import { HEADROOM } from '../../src/shared/json/json-body.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { jsonEndpoints, type InferenceParts } from '../../src/inference/routes/json-endpoints.ts'
import { prepareInThread, type Destination } from '../../src/inference/routes/prepare-in-thread.ts'
import { needsThread, prepareRequest } from '../../src/inference/routes/inference.ts'
import { parsedBody, plainFacts } from '../support/made-job.ts'

const entry = {
  id: 'meta/a',
  categories: ['llm', 'embedding'],
  context_length: 10_000,
  supported_parameters: [],
  serverless: { engine: { kind: 'openai', urls: ['http://127.0.0.1:1'] }, limits: {} },
}
const [model] = parseCatalog(JSON.stringify({ models: [entry] }), 'catalog.yaml', () => undefined)
const destination: Destination = { model: model!, deployment: model!.serverless! }
const chat = jsonEndpoints.find(({ id }) => id === 'chatCompletions') ?? assert.fail()

const caller = { owner: 'a', isGone: false, onGone: () => () => {}, holdRequest() {} }

function prepare(exchange: typeof caller, find: () => Destination, endpoint = chat, content = 'Hi'): Promise<unknown> {
  const body = { model: 'meta/a', messages: [{ role: 'user', content }] }
  const bytes = Buffer.concat([Buffer.alloc(HEADROOM, ' '), Buffer.from(JSON.stringify(body))])
  return prepareInThread(exchange as unknown as Exchange, endpoint, bytes, plainFacts, find)
}

describe('a request prepared in a thread', () => {
  it('is what its endpoint makes of it', async () => {
    const { result } = (await prepare(caller, () => destination)) as { result: { bodies: Buffer[]; terms: object } }
    assert.ok(Buffer.isBuffer(result.bodies[0]))
    assert.deepEqual((JSON.parse(result.bodies[0].toString()) as { messages: unknown }).messages, [
      { role: 'user', content: 'Hi' },
    ])
  })

  it('is refused with all that the refusal says, as anywhere else', async () => {
    await assert.rejects(
      prepare(caller, () => destination, chat, 'word '.repeat(20_000)),
      ({ code, param, tokens }: ApiError) => {
        assert.deepEqual([code, param, tokens?.limit], ['context_length_exceeded', 'messages', 10_000])
        return (tokens?.input ?? 0) > 10_000
      },
    )
  })

  it('goes no further when its caller has disconnected after it was read', async () => {
    // It is there when the turn begins, and has left when the body was read.
    const looks = [false, true]
    const leaving = {
      ...caller,
      get isGone() {
        return looks.shift() ?? true
      },
    }
    await assert.rejects(
      prepare(leaving, () => assert.fail('its model was looked up')),
      CallerLeft,
    )
  })

  it('that fails is the only one that fails', async () => {
    await assert.rejects(
      prepare(caller, () => destination, { ...chat, id: 'unknown' }),
      TypeError,
    )
    assert.ok(await prepare(caller, () => destination))
  })

  it('is refused if the thread fails, and the next one gets another thread, even while the first is ending', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    assert.ok(await prepare(caller, () => destination))
    t.mock.timers.tick(30_000)
    const threads: Worker[] = []
    const started = (worker: Worker): void => void threads.push(worker)
    process.on('worker', started)
    t.after(() => process.off('worker', started))
    const failing = prepare(caller, () => {
      // An error that nothing catches is reported some time before the thread ends.
      queueMicrotask(() => threads[0]?.emit('error', new Error('broken')))
      return destination
    })
    await assert.rejects(failing, { name: 'Error', code: 'service_unavailable', cause: new Error('broken') })
    assert.ok(await prepare(caller, () => destination))
    assert.equal(threads.length, 2)
    await threads[0]?.terminate()
    assert.ok(await prepare(caller, () => destination))
    assert.equal(threads.length, 2, 'the end of the first does not end the second')
  })

  it('keeps its thread, although the time of an idle one passes meanwhile', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    assert.ok(await prepare(caller, () => destination))
    const find = (): Destination => {
      t.mock.timers.tick(30_000)
      return destination
    }
    assert.ok(await prepare(caller, find))
  })

  it('counts its images to the memory that parsing takes', async () => {
    const held: number[] = []
    const counting = { ...caller, holdRequest: (bytes: number) => void held.push(bytes) }
    const bytes = Buffer.concat([Buffer.alloc(HEADROOM, ' '), Buffer.from('{"model":"meta/a","messages":[]}')])
    for (const images of [new Map<string, string>(), new Map([['https://a/b.png', 'x'.repeat(5000)]])]) {
      await prepareInThread(counting, chat, Buffer.from(bytes), { ...plainFacts, images }, () => destination).catch(
        () => {},
      )
    }
    assert.ok(held[1]! - held[0]! >= 5000, held.join())
  })

  it('has a body of more than 512 KiB', () => {
    assert.deepEqual(
      [524_288, 524_289].map((bytes) => needsThread(Buffer.alloc(bytes))),
      [false, true],
    )
  })

  it('gets a new thread after the last one has ended because it was idle', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    assert.ok(await prepare(caller, () => destination))
    t.mock.timers.tick(30_000)
    assert.ok(await prepare(caller, () => destination))
  })
})

describe('token ids to embed', () => {
  const embeddings = jsonEndpoints.find(({ id }) => id === 'embeddings') ?? assert.fail()

  it('go to the thread once, when it is needed', async () => {
    let times = 0
    const once: typeof embeddings = {
      ...embeddings,
      prepare(...given) {
        assert.equal(++times, 1, 'it is prepared here again')
        return embeddings.prepare(...given)
      },
    }
    const bytes = Buffer.concat([Buffer.alloc(HEADROOM, ' '), Buffer.from('{"model":"meta/a","input":[9906,1917]}')])
    const parts = { ...plainFacts, files: undefined } as unknown as InferenceParts
    const { result } = await prepareRequest(parts, once, caller as unknown as Exchange, bytes, () => destination)
    assert.match(result.bodies[0]?.toString() ?? '', /Hello world/)
  })
  const ask = (isInThread: boolean): unknown =>
    embeddings.prepare(
      parsedBody('{"model":"meta/a","input":[9906,1917]}'),
      destination.model,
      destination.deployment,
      {
        ...plainFacts,
        isInThread,
      },
    )

  it('are decoded only in the thread, because loading their table takes a tenth of a second', () => {
    assert.deepEqual(ask(false), { missing: 'thread' })
    assert.match((ask(true) as { bodies: Buffer[] }).bodies[0]?.toString() ?? '', /Hello world/)
  })
})
