import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCatalog } from '../../src/catalog/file.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { openCatalogInForce, type CatalogInForceParts } from '../../src/catalog/catalog-in-force.ts'
import type { Model } from '../../src/catalog/model.ts'
import { turn } from '../support/hand-clock.ts'

const catalogOf = (maxWaitMs: number, concurrent = 4, engine: object = {}): readonly Model[] =>
  parseCatalog(
    JSON.stringify({
      models: [
        {
          id: 'meta/a',
          categories: ['llm'],
          context_length: 1000,
          serverless: {
            engine: { kind: 'vllm', urls: ['http://127.0.0.1:1'], ...engine },
            limits: { max_wait_ms: maxWaitMs, max_concurrent_requests: concurrent },
          },
        },
      ],
    }),
    'catalog.yaml',
    () => undefined,
  )

describe('a catalog that comes into force', () => {
  async function stage(maxWaitMs: number, engine = {}) {
    const happened: string[] = []
    const changes = memoryChanges()
    let concurrent = 4
    /** What an operator has set, which has to be read first. */
    let stored = 4
    const parts = {
      source: { file: undefined, read: () => catalogOf(maxWaitMs, 4, engine) },
      lanes: {
        dropReplaced: async () => ['meta/a'],
        async reload() {
          await turn()
          concurrent = stored
          happened.push('lanes read')
        },
        applied: () => catalogOf(maxWaitMs, concurrent),
      },
      prices: {
        async syncListPrices() {
          await turn()
          happened.push('prices stored')
        },
      },
      engines: { update: (deployments: readonly unknown[]) => happened.push(`engines of ${deployments.length}`) },
      admission: {
        setLanes: (lanes: ReadonlyMap<string, { maxConcurrentRequests: number }>) =>
          happened.push(...[...lanes].map(([lane, it]) => `${lane} has ${it.maxConcurrentRequests}`)),
      },
      local: { knows: () => true },
      changes,
      workspaceNames: () => [],
      log: {
        info: ({ lane }: { lane: string }, message: string) => happened.push(`${lane}: ${message.slice(0, 31)}`),
        warn: (about: { max_wait_ms?: number } | string) =>
          typeof about === 'object' && about.max_wait_ms && happened.push(`warned of ${about.max_wait_ms}`),
      },
    }
    await openCatalogInForce(parts as unknown as CatalogInForceParts)
    return { happened, changes, setLimit: (next: number) => void (stored = next) }
  }

  it('stores its prices before engines and queues are updated', async () => {
    const { happened } = await stage(240_000)
    assert.deepEqual(happened, [
      'prices stored',
      'meta/a: the limits in the file have cha',
      'engines of 1',
      'meta/a has 4',
    ])
  })

  it('warns about a maximum wait that is longer than clients wait and the engine may take to start', async () => {
    const { happened } = await stage(240_001)
    assert.equal(happened.at(-1), 'warned of 240001')
    const started = { urls: null, run: { command: ['serve'], port: 8101, start_timeout_ms: 300_000 } }
    const warnings = async (maxWaitMs: number): Promise<readonly string[]> =>
      (await stage(maxWaitMs, started)).happened.filter((it) => it.startsWith('warned'))
    assert.deepEqual([await warnings(300_000), await warnings(300_001)], [[], ['warned of 300001']])
  })

  it('is refused with workers if it has an engine that Weir starts', async () => {
    const run = { command: ['serve'], port: 8101 }
    const source = { file: undefined, read: () => catalogOf(1000, 4, { urls: null, run }) }
    const parts = { source, processes: 2, changes: memoryChanges() } as unknown as CatalogInForceParts
    await assert.rejects(
      openCatalogInForce(parts),
      /meta\/a: an engine with run needs a service of one process; start it/,
    )
  })

  it('uses the limits that an operator sets, here or at another replica', async () => {
    const { happened, changes, setLimit } = await stage(1000)
    happened.length = 0
    setLimit(9)
    await changes.announce('lanes')
    assert.equal(happened[0], 'lanes read')
    assert.equal(happened.at(-1), 'meta/a has 9')
  })
})
