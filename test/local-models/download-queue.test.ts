import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { downloadQueue, type DownloadEnd } from '../../src/local-models/download-queue.ts'
import { downloadList } from '../../src/local-models/downloads.ts'
import { RUNTIME_NAME } from '../../src/local-models/files/runtime-files.ts'

/** Downloads that the test ends. */
function stage(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const running = new Map<string, (end: DownloadEnd) => void>()
  const started: string[] = []
  const queue = downloadQueue((name, signal) => {
    started.push(name)
    const { promise, resolve } = Promise.withResolvers<DownloadEnd>()
    running.set(name, resolve)
    signal.addEventListener('abort', () => resolve('stopped'))
    return promise.finally(() => running.delete(name))
  })
  const end = async (name: string, how: DownloadEnd): Promise<void> => {
    ;(running.get(name) ?? assert.fail(`${name} does not run`))(how)
    await settled()
  }
  return { queue, started, end, now: () => [...running.keys()] }
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}
const listed = { isAsked: false }
const asked = { isAsked: true }

describe('the downloads of a service', () => {
  it('run one after the other, and one that the operator asks for beside them', async (t) => {
    const { queue, end, now } = stage(t)
    for (const name of ['a', 'b', 'c']) queue.add(name, listed)
    assert.deepEqual(now(), ['a'])
    for (const name of ['x', 'y']) queue.add(name, asked)
    assert.deepEqual(now(), ['a', 'x'])
    assert.deepEqual([queue.has('y'), queue.isRunning('y'), queue.isRunning('x')], [true, false, true])
    await end('x', 'done')
    assert.deepEqual(now(), ['a', 'y'])
    await end('a', 'done')
    assert.deepEqual(now(), ['y', 'b'])
    assert.equal(queue.has('a'), false)
  })

  it('run once, however often they are asked for', (t) => {
    const { queue, started } = stage(t)
    for (const name of ['x', 'x', 'a', 'a']) queue.add(name, name === 'x' ? asked : listed)
    assert.deepEqual(started, ['x', 'a'])
  })

  it('begin with what every model needs, alone', async (t) => {
    const { queue, end, now } = stage(t)
    queue.add(RUNTIME_NAME, listed)
    queue.add('a', listed)
    queue.add('x', asked)
    assert.deepEqual(now(), [RUNTIME_NAME])
    await end(RUNTIME_NAME, 'done')
    assert.deepEqual(now(), ['a', 'x'])
  })

  it('do not wait for one that fails, which is tried again after 30 s, or when the operator asks for it', async (t) => {
    const { queue, end, now, started } = stage(t)
    queue.add('a', listed)
    queue.add('b', listed)
    await end('a', 'failed')
    assert.deepEqual([now(), queue.has('a')], [['b'], true])
    queue.add('a', listed)
    t.mock.timers.tick(29_999)
    await end('b', 'failed')
    assert.deepEqual(now(), [])
    t.mock.timers.tick(1)
    assert.deepEqual(now(), ['a'])
    queue.add('b', asked)
    assert.deepEqual(now(), ['a', 'b'])
    assert.deepEqual(started, ['a', 'b', 'a', 'b'])
  })

  it('that fail again after they were asked for are tried 30 s after that', async (t) => {
    const { queue, end, now } = stage(t)
    queue.add('a', listed)
    await end('a', 'failed')
    t.mock.timers.tick(29_000)
    queue.add('a', asked)
    await end('a', 'failed')
    t.mock.timers.tick(29_999)
    assert.deepEqual(now(), [])
    t.mock.timers.tick(1)
    assert.deepEqual(now(), ['a'])
  })

  it('stop when they are dropped, and can be asked for again at once', async (t) => {
    const { queue, now } = stage(t)
    queue.add('a', asked)
    queue.drop('a')
    assert.equal(queue.has('a'), false)
    queue.add('a', asked)
    await settled()
    assert.equal(queue.has('a'), true)
    queue.close()
    await settled()
    assert.deepEqual(now(), [])
  })
})

describe('the progress of downloads', () => {
  const progress = (slug: string, receivedBytes: number) => ({ slug, receivedBytes, totalBytes: 1000 })

  it('has the speed of the last five seconds', () => {
    let now = 0
    const downloads = downloadList(() => now)
    const speed = (): number | undefined => downloads.list()[0]?.bytesPerSecond
    downloads.progress(progress('a/b', 100))
    assert.equal(speed(), 0)
    now = 2000
    downloads.progress(progress('a/b', 500))
    assert.equal(speed(), 200)
    now = 4000
    assert.equal(speed(), 100, 'it falls while nothing arrives')
    now = 9000
    assert.equal(speed(), 0)
    downloads.progress(progress('a/b', 600))
    now = 10_000
    downloads.progress(progress('a/b', 50))
    assert.equal(speed(), 0, 'an attempt that begins again has no negative speed')
  })

  it('counts what arrived less than five seconds ago, from the first to the last piece', () => {
    let now = 0
    const downloads = downloadList(() => now)
    for (const bytes of [100, 200, 600]) {
      downloads.progress(progress('a', bytes))
      now += 1000
    }
    assert.equal(downloads.list()[0]?.bytesPerSecond, 167)
    now = 4999
    assert.equal(downloads.list()[0]?.bytesPerSecond, 100)
    now = 5000
    assert.equal(downloads.list()[0]?.bytesPerSecond, 100, 'without the first piece')
  })

  it('has failed with what it had, until it goes on', () => {
    let now = 0
    const downloads = downloadList(() => now)
    downloads.failed('a', 'no route')
    const failed = { model: 'a', receivedBytes: 0, totalBytes: undefined, bytesPerSecond: 0, problem: 'no route' }
    assert.deepEqual(downloads.list(), [failed])
    downloads.progress(progress('a', 10))
    assert.deepEqual(downloads.list(), [{ ...failed, receivedBytes: 10, totalBytes: 1000, problem: undefined }])
    now = 1000
    downloads.progress(progress('a', 30))
    assert.equal(downloads.list()[0]?.bytesPerSecond, 20)
    downloads.failed('a', 'no route')
    assert.deepEqual(downloads.list(), [{ ...failed, receivedBytes: 30, totalBytes: 1000 }])
  })

  it('ends with the download', () => {
    const downloads = downloadList(() => 0)
    for (const slug of ['a', 'b', 'c']) downloads.progress(progress(slug, 10))
    downloads.ready('a')
    downloads.stopped('b')
    downloads.failed('c', 'no route')
    assert.deepEqual(downloads.list(), [
      { model: 'c', receivedBytes: 10, totalBytes: 1000, bytesPerSecond: 0, problem: 'no route' },
    ])
  })
})
