import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { leastRequestMemory } from '../../src/config/config-file.ts'
import { loadConfig } from '../../src/config.ts'
import { workerConfig, workerPlace } from '../../src/cli/serve/worker.ts'

const MIB = 2 ** 20

describe('the configuration of a worker', () => {
  const config = { ...loadConfig({}, { WEIR_DATA_DIR: '/data' }), maxBodyBytes: MIB, maxRequestMemoryBytes: 1000 * MIB }

  it('has its part of the memory for requests', () => {
    assert.equal(config.maxRequestMemoryBytes, 1000 * MIB)
    for (const [count, bytes] of [
      [1, 1000 * MIB],
      [2, 500 * MIB],
      [3, Math.floor((1000 * MIB) / 3)],
    ] as const) {
      assert.equal(workerConfig(config, { number: 1, count }).maxRequestMemoryBytes, bytes)
    }
  })

  it('has at least the memory for one body, however many workers there are', () => {
    const { maxRequestMemoryBytes } = workerConfig(config, { number: 1, count: 256 })
    assert.equal(maxRequestMemoryBytes, leastRequestMemory(MIB))
    assert.ok(maxRequestMemoryBytes > (1000 * MIB) / 256)
  })

  it('has a directory of its own, beside what all workers share', () => {
    const { dataDir, sharedDir, worker, processes } = workerConfig(config, { number: 2, count: 4 })
    assert.deepEqual(
      { dataDir, sharedDir, worker, processes },
      { dataDir: '/data/worker-2', sharedDir: '/data', worker: 2, processes: 4 },
    )
    assert.deepEqual([config.worker, config.processes], [undefined, 1])
  })
})

describe('the number of a worker', () => {
  function connect(t: TestContext, isConnected: boolean): void {
    const { connected } = process
    t.after(() => Object.assign(process, { connected }))
    Object.assign(process, { connected: isConnected })
  }

  it('is given by the process that started it', (t) => {
    connect(t, true)
    assert.deepEqual(workerPlace('2/4'), { number: 2, count: 4 })
    assert.deepEqual(workerPlace('12/256'), { number: 12, count: 256 })
    for (const text of [undefined, '', '2', '2/', '/4', '2/4/6', 'x/4', ' 2/4', '2/4\n']) {
      assert.equal(workerPlace(text), undefined, text)
    }
  })

  it('does not exist if no process started it', (t) => {
    connect(t, false)
    assert.equal(workerPlace('2/4'), undefined)
  })
})
