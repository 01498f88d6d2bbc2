import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Engine } from '../../src/engines/engine.ts'
import { engineRoutes, type EngineState } from '../../src/engines/routes/engines.ts'
import { engineCommands, onDemandRoutes } from '../../src/engines/routes/on-demand.ts'
import type { OnDemandStatus } from '../../src/engines/on-demand/status.ts'
import type { LaneSettings } from '../../src/catalog/lane-settings.ts'
import type { MissingFiles } from '../../src/catalog/unavailable-model.ts'
import type { AuditStore } from '../../src/operate/audit/audit-store.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { catalogOf } from '../support/catalog.ts'
import { askDocumented } from '../support/route-answer.ts'
import { modelEntry } from '../support/weir.ts'

/** What operators see of engines, and the orders that they give. The engines are scripted. */

const URL = 'http://127.0.0.1:8000/v1'
const LANE = 'meta/test-8b'
const status: OnDemandStatus = {
  lane: LANE,
  state: 'ready',
  waiting: 1,
  running: 2,
  isPinned: true,
  canSleep: false,
  device: 'gpu0',
  deviceBytes: 100,
  bytes: 60,
  memory: { bytes: 70, source: 'measured', measuredBytes: 65 },
  startsMs: [1000],
  readyInMs: 500,
  problem: 'crashed',
  lastLines: ['out of memory'],
}
const view = {
  state: 'ready',
  waiting: 1,
  running: 2,
  pinned: true,
  can_sleep: false,
  device: 'gpu0',
  device_bytes: 100,
  needed_bytes: 70,
  memory_source: 'measured',
  measured_bytes: 65,
  held_bytes: 60,
  start_ms: [1000],
  ready_in_ms: 500,
  problem: 'crashed',
  last_lines: ['out of memory'],
}
const engine: EngineState = {
  lane: LANE,
  url: URL,
  isUp: true,
  inFlight: 2,
  failures: 3,
  lastFailure: 'reset',
  cacheTokens: 400,
  load: { running: 12, waiting: 3, cacheUse: 0.5 },
}

/** Orders are kept, and refused by name. */
function onDemandOf(...list: readonly OnDemandStatus[]) {
  const orders: string[] = []
  return {
    orders,
    onDemand: { list: () => list, order: (lane: string, order: string) => void orders.push(`${order} ${lane}`) },
  }
}

describe('the engines, over the API', () => {
  async function stage(engines: readonly EngineState[], missing?: MissingFiles, problem?: string) {
    const drained = new Set<string>()
    let reads = 0
    const lanes = {
      drained,
      drainedUrls: () => [...drained],
      drain: async (url: string) => void drained.add(url),
      undrain: async (url: string) => void drained.delete(url),
    } as Partial<LaneSettings> as LaneSettings
    const routes = engineRoutes({
      catalog: await catalogOf(modelEntry([URL], { dedicated: [{ workspace: 'acme' }] })),
      lanes,
      engines: () => engines,
      readEngineLoads: async () => void reads++,
      engineOf: ({ mode }) => ({ missingFiles: () => (mode === 'serverless' ? missing : undefined) }) as Engine,
      downloads: () => [{ model: 'starter', receivedBytes: 5, totalBytes: undefined, problem }],
      ...onDemandOf(status),
    })
    return {
      drained,
      reads: () => reads,
      call: (request: string, body?: object) =>
        askDocumented(routes, request.replace(' ', ' /admin/v1/engines'), body ? { body } : {}),
    }
  }

  it('are listed with their addresses, by deployment, once they have reported their load', async () => {
    const other = { ...engine, url: 'http://b/v1', isUp: false, lastFailure: undefined, cacheTokens: undefined }
    const { call, drained, reads } = await stage([
      engine,
      { ...other, load: { running: 1, waiting: 0, cacheUse: undefined } },
    ])
    for (const url of [URL, 'http://gone/v1']) drained.add(url)
    const { body } = await call('GET ')
    const address = { url: URL, up: true, drained: true, in_flight: 2, failures: 3, last_failure: 'reset' }
    const addresses = [
      { ...address, cache_tokens: 400, reported: { running: 12, waiting: 3, cache_use: 0.5 } },
      {
        ...address,
        url: other.url,
        up: false,
        drained: false,
        last_failure: null,
        cache_tokens: null,
        reported: { running: 1, waiting: 0, cache_use: null },
      },
    ]
    const deployment = { lane: LANE, model: LANE, mode: 'serverless', workspace: null, kind: 'openai', download: null }
    const reserved = { ...deployment, lane: `${LANE}@acme`, mode: 'dedicated', workspace: 'acme', kind: null }
    assert.deepEqual(body, {
      object: 'list',
      data: [
        { ...deployment, addresses, on_demand: view },
        { ...reserved, addresses: [], on_demand: null },
      ],
      drained_without_engine: ['http://gone/v1'],
    })
    assert.equal(reads(), 1)
  })

  it('show the download of missing files', async () => {
    const missing: MissingFiles = { slug: 'starter', bytes: 900, isArriving: false, isPaused: false }
    const stateOf = async (changes: Partial<MissingFiles>, problem?: string) => {
      const { call } = await stage([], { ...missing, ...changes }, problem)
      const { download } = (await call('GET ')).body.data[0]
      assert.match(download.message, new RegExp(`^(The download of )?${LANE} `))
      return [download.state, download.received_bytes, download.total_bytes, download.problem]
    }
    assert.deepEqual(await stateOf({}), ['not_downloaded', 5, 900, null])
    assert.deepEqual(await stateOf({ isArriving: true }), ['downloading', 5, 900, null])
    assert.deepEqual(await stateOf({ isArriving: true }, 'offline'), ['failed', 5, 900, 'offline'])
    assert.deepEqual(await stateOf({ isPaused: true }, 'offline'), ['paused', 5, 900, 'offline'])
    assert.deepEqual(await stateOf({ slug: 'other' }), ['not_downloaded', 0, 900, null])
  })

  it('are drained by address, on record, and one that no engine has any more can be undrained', async () => {
    const sharing = { ...engine, lane: 'other', inFlight: 5 }
    const { call, drained } = await stage([engine, sharing, { ...engine, url: 'embedded' }])
    const down = await call('POST /drain', { url: URL })
    assert.deepEqual([down.body, [...drained]], [{ url: URL, drained: true, in_flight: 7 }, [URL]])
    assert.partialDeepStrictEqual(down.recorded, [{ action: 'drainEngine', state: { drained: false, in_flight: 7 } }])
    const up = await call('POST /undrain', { url: URL })
    assert.deepEqual([up.body, [...drained]], [{ url: URL, drained: false, in_flight: 7 }, []])
    assert.partialDeepStrictEqual(up.recorded, [{ action: 'undrainEngine', state: { drained: true } }])
    drained.add('http://gone/v1')
    const gone = await call('POST /undrain', { url: 'http://gone/v1' })
    assert.deepEqual(gone.body, { url: 'http://gone/v1', drained: false, in_flight: 0 })
    for (const url of ['embedded', 'http://gone/v1', 'x'.repeat(201)])
      for (const path of ['/drain', '/undrain'])
        await assert.rejects(call(`POST ${path}`, { url }), {
          code: 'not_found',
          param: 'url',
          message: new RegExp(`"${url.slice(0, 200)}"`),
        })
  })
})

describe('an order for an engine', () => {
  it('is given over the API, on record', async () => {
    const { onDemand, orders } = onDemandOf({ ...status, lane: 'other' }, status)
    const routes = onDemandRoutes({ onDemand })
    const order = (body: object) => askDocumented(routes, 'POST /admin/v1/engines/orders', { body })
    const { body, recorded } = await order({ lane: LANE, order: 'stop' })
    assert.deepEqual([body, orders], [{ lane: LANE, ...view }, [`stop ${LANE}`]])
    assert.partialDeepStrictEqual(recorded, [{ action: 'orderEngine', state: { state: 'ready', pinned: true } }])
    await assert.rejects(order({ lane: LANE, order: 'sleep' }), { code: 'conflict', param: 'order' })
    await assert.rejects(order({ lane: LANE, order: 'end' }), { code: 'invalid_value' })
    const message = new RegExp(`"${'x'.repeat(200)}"`)
    await assert.rejects(order({ lane: 'x'.repeat(201), order: 'stop' }), { code: 'not_found', param: 'lane', message })
    assert.equal(orders.length, 1)
  })

  it('is given by a command, on record, and shows what is unknown as null', async () => {
    const { onDemand, orders } = onDemandOf({
      ...status,
      canSleep: true,
      device: undefined,
      deviceBytes: undefined,
      memory: undefined,
      readyInMs: undefined,
      problem: undefined,
    })
    const entries: unknown[] = []
    const audit: AuditStore = {
      beginAudit: async (entry) => entries.push([entry.actor, entry.subject, entry.request, entry.before]),
      endAudit: async (id, outcome) => void entries.push([id, outcome]),
      auditLog: async () => [],
    }
    const commands = engineCommands({ onDemand }, { audit, clock: systemClock })
    const unknown = { device: null, device_bytes: null, memory_source: null, measured_bytes: null, ready_in_ms: null }
    assert.deepEqual(commands.list(), [
      { lane: LANE, ...view, ...unknown, can_sleep: true, needed_bytes: 0, problem: null },
    ])
    await commands.order(LANE, 'sleep', 'command by root')
    assert.deepEqual(orders, [`sleep ${LANE}`])
    await assert.rejects(commands.order(LANE, 'e'.repeat(51), 'x'), {
      code: 'conflict',
      message: `There is no order "${'e'.repeat(50)}".`,
    })
    await assert.rejects(commands.order('none', 'stop', 'x'), { code: 'not_found' })
    assert.equal(orders.length, 1)
    assert.deepEqual(entries.slice(0, 2), [
      ['command by root', LANE, '{"order":"sleep"}', '{"state":"ready","pinned":true}'],
      [1, 'done'],
    ])
  })
})
