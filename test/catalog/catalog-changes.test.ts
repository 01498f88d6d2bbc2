import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalogDiff } from '../../src/catalog/catalog-diff.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import { openLaneSettings } from '../../src/catalog/lane-settings.ts'
import { lossesIn } from '../../src/catalog/lost-prices.ts'
import { catalogWarnings } from '../../src/catalog/warnings.ts'
import type { Model } from '../../src/catalog/model.ts'
import type { LaneSettingsSnapshot, OperatorLimits } from '../../src/catalog/lane-settings-store.ts'
import { turn } from '../support/hand-clock.ts'
import { gate, type Gate } from '../support/waiting.ts'

const catalog = (...entries: object[]): readonly Model[] =>
  parseCatalog(JSON.stringify({ models: entries }), 'weir.yaml', () => 'secret')

const entry = (changes: object = {}): object => ({
  id: 'a/b',
  categories: ['llm'],
  context_length: 4096,
  pricing: { input_per_million: '1', output_per_million: '2' },
  serverless: { engine: { kind: 'vllm', urls: ['http://127.0.0.1:8000'], api_key_env: 'KEY' } },
  ...changes,
})

describe('the difference between two catalogs', () => {
  it('names every changed field as the file does, and no secret', () => {
    const dedicated = [
      {
        workspace: 'acme',
        per_hour: '3',
        limits: { max_wait_ms: 5, batch: { max_share: 0.5 }, flex: { max_wait_ms: 7 } },
      },
    ]
    const changed = catalog(
      entry({ name: 'B', pricing: { input_per_million: '1', output_per_million: '2.5' }, dedicated }),
    )
    assert.deepEqual(catalogDiff(catalog(entry()), catalog(entry())), [])
    const [difference] = catalogDiff(catalog(entry()), changed)
    assert.deepEqual(difference, {
      model: 'a/b',
      change: 'changed',
      fields: [
        { field: 'name', before: 'a/b', after: 'B' },
        { field: 'pricing.output_per_million', before: '2.00', after: '2.50' },
        { field: 'a/b@acme.limits.token_budget', before: null, after: '200000' },
        { field: 'a/b@acme.limits.max_concurrent_requests', before: null, after: '32' },
        { field: 'a/b@acme.limits.max_queue_depth', before: null, after: '256' },
        { field: 'a/b@acme.limits.max_wait_ms', before: null, after: '5' },
        { field: 'a/b@acme.limits.batch.max_share', before: null, after: '0.5' },
        { field: 'a/b@acme.limits.flex.max_wait_ms', before: null, after: '7' },
        { field: 'a/b@acme.per_hour', before: null, after: '3' },
      ],
    })
  })

  it('lists added and removed models', () => {
    const [one, other] = [catalog(entry()), catalog(entry({ id: 'a/c' }))]
    const [added, removed] = catalogDiff(one, other)
    assert.deepEqual(
      [added?.model, added?.change, removed],
      ['a/c', 'added', { model: 'a/b', change: 'removed', fields: [] }],
    )
    const engines = added?.fields.filter(({ field }) => field === 'serverless.engine')
    assert.deepEqual(engines, [{ field: 'serverless.engine', before: null, after: 'vllm a/c http://127.0.0.1:8000' }])
    assert.ok(!JSON.stringify(added).includes('secret'))
    assert.ok(added?.fields.every(({ after }) => after !== ''))
  })
})

describe('what a new catalog would lose', () => {
  it('is all of its models, or a price that is charged now', () => {
    const before = catalog(entry({ dedicated: [{ workspace: 'acme', per_hour: '3' }] }))
    assert.deepEqual(lossesIn(before, []), ['it has no models'])
    assert.deepEqual(lossesIn([], []), [])
    assert.deepEqual(lossesIn(before, before), [])
    assert.deepEqual(lossesIn(before, catalog(entry())), [], 'a reservation may go')
    assert.deepEqual(lossesIn(before, catalog(entry({ id: 'a/c' }))), [], 'a model may go')
    const free = catalog(entry({ pricing: { input_per_million: '1' }, dedicated: [{ workspace: 'acme' }] }))
    assert.deepEqual(lossesIn(before, free), ['a/b would lose output_per_million, per_hour for acme'])
    assert.deepEqual(lossesIn(free, before), [])
    const cached = catalog(
      entry({ pricing: { input_per_million: '1', output_per_million: '2', cached_input_per_million: '0.5' } }),
    )
    assert.deepEqual(lossesIn(cached, catalog(entry())), [], 'cached tokens then cost what others do')
  })
})

describe('warnings about a catalog', () => {
  it('name prices that are never charged, and workspaces that do not exist', () => {
    assert.deepEqual(catalogWarnings(catalog(entry()), []), [])
    const wrong = catalog(
      entry({
        categories: ['embedding'],
        pricing: { input_per_million: '1', output_per_million: '2', per_image: '0' },
        dedicated: [{ workspace: 'acme' }, { workspace: 'known' }],
        visible_to: ['absent', 'known'],
      }),
    )
    assert.deepEqual(catalogWarnings(wrong, ['known']), [
      'a/b: output_per_million is never charged for embedding; give input_per_million or cached_input_per_million',
      'a/b: capacity is reserved for "acme", but there is no such workspace',
      'a/b: visible_to names "absent", but there is no such workspace',
    ])
  })
})

describe('limits that an operator sets', () => {
  const limitsOf = ([model]: readonly Model[]) => model?.serverless?.limits.maxWaitMs

  async function turns(count: number): Promise<void> {
    for (let index = 0; index < count; index++) await turn()
  }

  async function stage() {
    let limits: OperatorLimits[] = []
    let drained: string[] = []
    const done: string[] = []
    /** Reads wait for these, one after the other; further ones are answered at once. */
    const answers: Gate[] = []
    const store = {
      async laneSettings(): Promise<LaneSettingsSnapshot> {
        const snapshot = { limits, drained }
        await answers.shift()?.opened
        return snapshot
      },
      // Slower than everything that must wait for it.
      async setLaneLimits(set: OperatorLimits) {
        await turns(5)
        limits = [set]
      },
      async clearLaneLimits(lane: string) {
        await turns(5)
        done.push(`cleared ${lane}`)
        limits = limits.filter((it) => it.lane !== lane)
      },
      async setDrained(url: string, isDrained: boolean) {
        await turns(5)
        drained = isDrained ? [url] : []
      },
    }
    const settings = await openLaneSettings(store, {
      announce: async (change) => {
        await turn()
        done.push(`announced ${change}`)
        await settings.reload()
        return []
      },
      subscribe: () => () => {},
    })
    return { settings, done, answers, stored: () => ({ limits: limits.map(({ lane }) => lane), drained }) }
  }

  it('apply until the file changes the limits of the lane', async () => {
    const { settings, done, stored } = await stage()
    const models = catalog(entry())
    const deployment = models[0]?.serverless ?? assert.fail()
    await settings.setLimits(deployment, { ...deployment.limits, maxWaitMs: 7 })
    assert.deepEqual(done, ['announced lanes'])
    const applied = settings.applied(models)
    assert.equal(limitsOf(applied), 7)
    assert.equal(applied[0]?.serverless?.limitsInFile?.maxWaitMs, 120_000)
    assert.equal(limitsOf(settings.applied(applied)), 7)
    assert.deepEqual(await settings.dropReplaced(applied), [])
    const ofBatch = { batch: { max_share: 0.5 }, flex: { max_wait_ms: 8 } }
    const [withBatch] = settings.applied(catalog(entry({ serverless: { limits: ofBatch } })))
    const { maxWaitMs, batch, maxFlexWaitMs } = withBatch?.serverless?.limits ?? assert.fail()
    assert.deepEqual([maxWaitMs, batch?.maxShare, maxFlexWaitMs], [7, 0.5, 8], 'those for batch work are of the file')
    const changed = settings.applied(catalog(entry({ serverless: { limits: { max_wait_ms: 9 } } })))
    assert.equal(limitsOf(changed), 9)
    assert.deepEqual(await settings.dropReplaced(changed), ['a/b'])
    assert.deepEqual(stored().limits, [], 'they do not return with the next start')
    assert.equal(limitsOf(settings.applied(models)), 120_000)
    assert.deepEqual(await settings.dropReplaced(changed), [])
  })

  it('are those of the file again when they are cleared, or set to the same', async () => {
    const { settings, done } = await stage()
    const models = catalog(entry())
    const deployment = models[0]?.serverless ?? assert.fail()
    await settings.setLimits(deployment, { ...deployment.limits, tokenBudget: 5 })
    await settings.clearLimits('a/b')
    assert.equal(settings.applied(models)[0]?.serverless?.limits.tokenBudget, 200_000)
    await settings.setLimits(deployment, { ...deployment.limits, tokenBudget: 5 })
    const [inForce] = settings.applied(models)
    await settings.setLimits(inForce?.serverless ?? assert.fail(), deployment.limits)
    assert.equal(settings.applied(models)[0]?.serverless?.limits.tokenBudget, 200_000)
    const announced = 'announced lanes'
    assert.deepEqual(done, [announced, 'cleared a/b', announced, announced, 'cleared a/b', announced])
  })

  it('keep new calls from addresses that are drained, until they are not', async () => {
    const { settings, done } = await stage()
    await settings.drain('http://127.0.0.1:1')
    assert.deepEqual(
      [settings.drained.has('http://127.0.0.1:1'), settings.drained.has('http://127.0.0.1:2')],
      [true, false],
    )
    await settings.undrain('http://127.0.0.1:1')
    assert.equal(settings.drained.has('http://127.0.0.1:1'), false)
    assert.deepEqual(done, ['announced lanes', 'announced lanes'])
  })

  it('are those of the newest read, in whatever order reads end', async () => {
    const { settings, answers } = await stage()
    const slow = gate()
    answers.push(slow)
    const earlier = settings.reload()
    await settings.drain('http://127.0.0.1:1')
    slow.open()
    await earlier
    assert.deepEqual(settings.drainedUrls(), ['http://127.0.0.1:1'])
  })
})
