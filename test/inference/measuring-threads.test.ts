import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { describe, it, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { ApiError, CallerLeft } from '../../src/shared/errors.ts'
import type { TurnClient } from '../../src/shared/turns.ts'
import { measureAudio } from '../../src/inference/audio/measure/measure.ts'
import type { ByteSource, MeasuredAudio } from '../../src/server/uploads/uploads.ts'
import { webmFile } from '../support/audio-containers.ts'
import { packetTracks } from '../support/audio-forgery.ts'
import { eventually } from '../support/waiting.ts'
import { turn } from '../support/hand-clock.ts'

const DECODE_MS = 60_000
const CLAIMS_MS = 10_000
const AT_ONCE = Math.max(2, Math.floor(availableParallelism() / 2))
const AT_ONCE_OF_OWNER = Math.ceil(AT_ONCE / 2)

const opus = readFileSync(new URL('../fixtures/audio/opus.webm', import.meta.url))

/** The threads that a test starts, and those of them that have ended. */
function watchThreads(t: TestContext) {
  const started: Worker[] = []
  const ended: Worker[] = []
  const watch = (worker: Worker): void => {
    started.push(worker)
    worker.once('exit', () => ended.push(worker))
  }
  process.on('worker', watch)
  t.after(() => process.off('worker', watch))
  const atLeast = (count: number): Promise<void> =>
    eventually(`${count} threads have started`, () => started.length >= count)
  return { started, ended, atLeast }
}

/** A caller that can leave. */
function caller(owner = 'a') {
  const listeners = new Set<() => void>()
  const client: TurnClient = {
    owner,
    isGone: false,
    onGone(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return { client, listeners, leave: () => listeners.forEach((listener) => listener()) }
}

/** What threads get when they ask for bytes. `nothing`: they wait until they are ended. */
type Answer = 'bytes' | 'nothing' | Error

/** A recording whose format can be read, and whose other bytes come as it is set. */
function recording(answers: { now: Answer }, bytes: Buffer = opus): ByteSource & { readonly asked: number[] } {
  const asked: number[] = []
  return {
    asked,
    length: bytes.length,
    async read(into, position) {
      // The format is found in the first 36 bytes.
      if (into.length > 36) {
        asked.push(into.length)
        if (answers.now === 'nothing') await new Promise(() => {})
        if (answers.now instanceof Error) throw answers.now
      }
      return bytes.subarray(position).copy(into)
    },
  }
}

/** Cannot be decoded, and says that it has this length. */
function claiming(ms: number): Buffer {
  const file = webmFile({ ...packetTracks().opus, codec: 'A_NONE' })
  file.writeDoubleBE(ms, file.indexOf(Buffer.from('4489', 'hex')) + 2 + 8)
  return file
}

const lengthOf = async (bytes: Buffer): Promise<MeasuredAudio | undefined> =>
  measureAudio(caller().client, recording({ now: 'bytes' }, bytes))

describe('the thread that measures a recording', () => {
  it('is ended after a minute, and the length is then read from the headers', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { started, ended, atLeast } = watchThreads(t)
    const answers: { now: Answer } = { now: 'nothing' }
    const { client, listeners } = caller()
    const source = recording(answers)
    const measured = measureAudio(client, source)
    await asks(source, 1)
    t.mock.timers.tick(DECODE_MS - 1)
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.deepEqual([started.length, ended.length], [1, 0])
    answers.now = 'bytes'
    t.mock.timers.tick(1)
    await atLeast(2)
    assert.equal(ended.length, 1, 'the first has ended before the second starts')
    const { durationMs = 0, ...others } = (await measured) ?? {}
    assert.deepEqual(others, { extension: 'webm', contentType: 'audio/webm', isClaimed: true })
    assert.ok(Math.abs(durationMs - 1700) <= 70, String(durationMs))
    assert.deepEqual([ended.length, listeners.size], [2, 0])
  })

  it('is ended after ten seconds if it only reads headers, and the length is then unknown', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { started, ended } = watchThreads(t)
    const source = recording({ now: 'nothing' })
    const measured = measureAudio(caller().client, source)
    await asks(source, 1)
    t.mock.timers.tick(DECODE_MS)
    await asks(source, 2)
    t.mock.timers.tick(CLAIMS_MS - 1)
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.deepEqual([started.length, ended.length], [2, 1])
    t.mock.timers.tick(1)
    assert.deepEqual(await measured, {
      extension: 'webm',
      contentType: 'audio/webm',
      durationMs: undefined,
      isClaimed: true,
    })
    assert.equal(ended.length, 2)
  })

  it('is ended when its caller disconnects, and the headers are not read', async (t) => {
    const { started, ended } = watchThreads(t)
    const { client, listeners, leave } = caller()
    const source = recording({ now: 'nothing' })
    const measured = measureAudio(client, source)
    await asks(source, 1)
    leave()
    await assert.rejects(measured, CallerLeft)
    assert.deepEqual([started.length, ended.length, listeners.size], [1, 1, 0])
  })

  it('is ended in the middle of its work when its caller disconnects', async (t) => {
    const { started, ended } = watchThreads(t)
    const { client, leave } = caller()
    const { opus: track } = packetTracks()
    const long = webmFile({ ...track, packets: Array.from({ length: 500 }, () => track.packets).flat() })
    const source = recording({ now: 'bytes' }, long)
    const read: ByteSource['read'] = (into, position) => {
      if (source.asked.length === 3) leave()
      return source.read(into, position)
    }
    await assert.rejects(measureAudio(client, { length: source.length, read }), CallerLeft)
    assert.deepEqual([started.length, ended.length], [1, 1])
    assert.ok(source.asked.length < long.length / 16_384, 'most of the file was never read')
  })

  it('is ended when the recording cannot be read', async (t) => {
    const { ended } = watchThreads(t)
    const source = recording({ now: new Error('the disk is gone') })
    await assert.rejects(measureAudio(caller().client, source), /the disk is gone/)
    assert.equal(ended.length, 1)
  })

  for (const what of ['fails', 'ends'] as const) {
    it(`leaves the length to the headers if it ${what} without an answer`, async (t) => {
      const { started, ended } = watchThreads(t)
      const answers: { now: Answer } = { now: 'nothing' }
      const source = recording(answers)
      const measured = measureAudio(caller().client, source)
      await asks(source, 1)
      answers.now = 'bytes'
      const [first] = started
      assert.ok(first)
      if (what === 'fails') first.emit('error', new Error('out of memory'))
      else void first.terminate()
      assert.equal((await measured)?.isClaimed, true)
      assert.deepEqual([started.length, ended.length], [2, 2])
    })
  }

  it('has 256 MiB, and writes nothing to the log of the service', async (t) => {
    const { started } = watchThreads(t)
    const { client, leave } = caller()
    const source = recording({ now: 'nothing' })
    const measured = measureAudio(client, source)
    await asks(source, 1)
    const [thread] = started
    assert.equal(thread?.resourceLimits?.maxOldGenerationSizeMb, 256)
    // They flow where they are copied to the output of this process.
    assert.deepEqual([thread.stdout.readableFlowing, thread.stderr.readableFlowing], [null, null])
    leave()
    await assert.rejects(measured, CallerLeft)
  })

  it('leaves no timer behind', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { started } = watchThreads(t)
    assert.equal((await lengthOf(opus))?.isClaimed, false)
    const set = t.mock.method(globalThis, 'setTimeout')
    const cleared = t.mock.method(globalThis, 'clearTimeout')
    await lengthOf(opus)
    const timers = set.mock.calls.map(({ result }) => result)
    assert.ok(timers.length > 0 && started.length === 2)
    const ended = new Set(cleared.mock.calls.map(({ arguments: [timer] }) => timer as unknown))
    assert.ok(timers.every((timer) => ended.has(timer)))
  })
})

/** A thread has asked for bytes this many times. */
function asks({ asked }: ReturnType<typeof recording>, times: number): Promise<void> {
  return eventually(`it is asked for bytes ${times} times`, () => asked.length >= times, 60_000)
}

describe('a length that is known only from headers', () => {
  it('is between a millisecond and a week', async () => {
    const WEEK_MS = 7 * 24 * 3600 * 1000
    for (const [said, taken] of [
      [0.1, 1],
      [1, 1],
      [500, 500],
      [1700.4, 1700],
      [WEEK_MS, WEEK_MS],
      [WEEK_MS + 1, undefined],
      [-1, undefined],
    ] as const) {
      const measured = await lengthOf(claiming(said))
      assert.deepEqual([measured?.durationMs, measured?.isClaimed], [taken, true], String(said))
    }
  })
})

describe('recordings that wait to be measured', () => {
  /** A caller whose recording is never done. */
  function waits(owner: string) {
    const { client, leave } = caller(owner)
    const source = recording({ now: 'nothing' })
    const end = measureAudio(client, source).then(
      () => 'measured',
      (error: unknown) => (error instanceof ApiError ? error.message : error instanceof CallerLeft ? 'left' : 'failed'),
    )
    return { source, leave, end }
  }

  it('are measured a few at a time, and those of one workspace at most half of them', async (t) => {
    const { started, atLeast } = watchThreads(t)
    const own = Array.from({ length: AT_ONCE_OF_OWNER + 2 }, () => waits('a'))
    await atLeast(AT_ONCE_OF_OWNER)
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.equal(started.length, AT_ONCE_OF_OWNER)
    const others = Array.from({ length: AT_ONCE }, (_, index) => waits(`other ${index}`))
    await atLeast(AT_ONCE)
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.equal(started.length, AT_ONCE)
    const all = [...own, ...others]
    for (const { leave } of all.toReversed()) leave()
    assert.deepEqual(new Set(await Promise.all(all.map(({ end }) => end))), new Set(['left']))
  })

  it('are at most 256, and 32 of one workspace', async (t) => {
    const { atLeast } = watchThreads(t)
    const running = Array.from({ length: AT_ONCE }, (_, index) => waits(`running ${index}`))
    await atLeast(AT_ONCE)
    const waiting = Array.from({ length: 256 }, (_, index) => waits(`owner ${Math.floor(index / 32)}`))
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.equal(
      await waits('owner 0').end,
      'Too many of your recordings are waiting to be measured. Try again when some of them are done.',
    )
    assert.equal(await waits('another').end, 'Too many recordings are waiting to be measured. Try again shortly.')
    const all = [...running, ...waiting]
    for (const { leave } of all.toReversed()) leave()
    assert.deepEqual(new Set(await Promise.all(all.map(({ end }) => end))), new Set(['left']))
  })
})
