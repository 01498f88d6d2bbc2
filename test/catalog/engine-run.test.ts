import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stringify } from 'yaml'
import { parseCatalog } from '../../src/catalog/file.ts'
import { modelEntry } from '../support/weir.ts'

const run = { command: ['serve', '${PORT}'], port: 8101 }

function read(engines: readonly object[], devices?: object, limits = {}) {
  const models = engines.map((engine, index) =>
    modelEntry([], { id: `a/model-${index}`, aliases: [], serverless: { engine, limits } }),
  )
  return parseCatalog(stringify({ models, ...(devices && { devices }) }), 'catalog.yaml', () => undefined)
}

const refuses = (engines: readonly object[], devices: object | undefined, message: RegExp): void =>
  assert.throws(() => read(engines, devices), message)

describe('run of an engine in the catalog', () => {
  it('gives the address, sizes in bytes, and as much time to wait as a start may take', () => {
    const engine = { kind: 'vllm', run: { ...run, device: 'gpu0', memory: '1.5GiB', sleep: { memory: '512MiB' } } }
    const [model] = read([engine], { gpu0: '80GiB' })
    const { engine: described, limits } = model!.serverless!
    assert.deepEqual(described?.urls, ['http://127.0.0.1:8101/v1'])
    assert.deepEqual(described?.run?.device, { name: 'gpu0', bytes: 80 * 2 ** 30 })
    assert.deepEqual([described?.run?.bytes, described?.run?.sleep], [1.5 * 2 ** 30, { bytes: 2 ** 29 }])
    assert.equal(limits.maxWaitMs, 600_000)
    const measured = { kind: 'vllm', run: { ...run, device: 'gpu0', sleep: { memory: '8GiB' } } }
    assert.equal(read([measured], { gpu0: '8GiB' })[0]!.serverless!.engine?.run?.bytes, undefined)
    const [short] = read([{ kind: 'vllm', run: { ...run, start_timeout_ms: 5000 } }])
    assert.equal(short!.serverless!.limits.maxWaitMs, 120_000)
    const [long] = read([{ kind: 'vllm', run: { ...run, start_timeout_ms: 7_200_000 } }])
    assert.equal(long!.serverless!.limits.maxWaitMs, 3_600_000)
    const [own] = read([{ kind: 'vllm', run }], undefined, { max_wait_ms: 7000 })
    assert.equal(own!.serverless!.limits.maxWaitMs, 7000)
  })

  it('has what the catalog says, and defaults for the rest', () => {
    const all = {
      ...run,
      env: { A: 'x' },
      ready: '/up',
      start_timeout_ms: 1000,
      stop_after_idle_ms: 1000,
      group: 'g',
      pin: true,
      preload: true,
    }
    const [given, usual] = read([
      { kind: 'vllm', run: all },
      { kind: 'vllm', run: { ...run, port: 8102 } },
    ])
    const { command, port } = run
    assert.deepEqual(given!.serverless!.engine?.run, {
      command,
      env: { A: 'x' },
      port,
      readyPath: '/up',
      startTimeoutMs: 1000,
      stopAfterIdleMs: 1000,
      device: undefined,
      bytes: undefined,
      group: 'g',
      isPinned: true,
      isPreloaded: true,
      sleep: undefined,
    })
    assert.deepEqual(usual!.serverless!.engine?.run, {
      command,
      env: {},
      port: 8102,
      readyPath: undefined,
      startTimeoutMs: 600_000,
      stopAfterIdleMs: undefined,
      device: undefined,
      bytes: undefined,
      group: undefined,
      isPinned: false,
      isPreloaded: false,
      sleep: undefined,
    })
  })

  it('is refused with what to do', () => {
    refuses([{ kind: 'vllm', run, urls: ['http://a'] }], undefined, /urls: is not allowed with run/)
    refuses([{ kind: 'embedded', run }], undefined, /run: is not allowed for kind embedded/)
    refuses(
      [{ kind: 'vllm', run: { ...run, device: 'gpu1', memory: '1GiB' } }],
      { gpu0: '8GiB' },
      /"gpu1" is not one of devices/,
    )
    refuses([{ kind: 'vllm', run: { ...run, memory: '1GiB' } }], undefined, /memory: is for engines with device/)
    refuses(
      [{ kind: 'vllm', run: { ...run, device: 'gpu0', memory: '9GiB' } }],
      { gpu0: '8GiB' },
      /is more than the device gpu0 has/,
    )
    refuses([{ kind: 'ollama', run: { ...run, sleep: {} } }], undefined, /sleep: is only for kind vllm/)
    const larger = { ...run, device: 'gpu0', memory: '1GiB', sleep: { memory: '2GiB' } }
    refuses([{ kind: 'vllm', run: larger }], { gpu0: '8GiB' }, /sleep\.memory: must be at most memory/)
    const unmeasured = { ...run, device: 'gpu0', sleep: { memory: '9GiB' } }
    refuses([{ kind: 'vllm', run: unmeasured }], { gpu0: '8GiB' }, /sleep\.memory: must be at most memory, or what/)
    refuses(
      [
        { kind: 'vllm', run },
        { kind: 'vllm', run },
      ],
      undefined,
      /8101 is already the port of a\/model-0/,
    )
    refuses([{ kind: 'vllm', run: { ...run, memory: '80GB' } }], undefined, /a size such as 24GiB/)
  })
})
