import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { UsageSums } from '../../src/billing/usage/usage-sums.ts'
import { latencyOfWorkspaces, latencyOverview } from '../../src/billing/usage/routes/latency-overview.ts'
import { monthOverview, requestList, usageOverview } from '../../src/billing/usage/routes/reports.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import type { ReportStore, SampledRequest } from '../../src/billing/usage/report-store.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import { CallerLeft } from '../../src/shared/errors.ts'
import type { TurnClient } from '../../src/shared/turns.ts'
import { gate } from '../support/waiting.ts'

/** What the reports ask of the store, and what they make of its answers. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const AUD = 1_000_000_000_000n

const sums = (requests: number, aud: bigint): UsageSums => ({
  rows: requests,
  requests,
  estimatedRequests: 0,
  capacityMs: 0n,
  inputTokens: 10n,
  cachedInputTokens: 4n,
  outputTokens: 5n,
  images: 1n,
  audioMs: 7n,
  amount: aud * AUD,
})

const clientOf = (owner: string): TurnClient => ({ owner, isGone: false, onGone: () => () => {} })

/** A store that keeps what it was asked, and answers as the test says. */
function asked<Store>(answers: Partial<Record<keyof Store, (query: never) => unknown>>) {
  const queries: [string, Record<string, unknown>][] = []
  const store = new Proxy(
    {},
    {
      get: (_, name: string) => async (query: Record<string, unknown>) => {
        queries.push([name, query])
        return (answers as Record<string, (it: unknown) => unknown>)[name]?.(query)
      },
    },
  )
  return { store: store as Store, queries }
}

describe('the usage of a period', () => {
  it('is queried once over time, and once for the largest groups', async () => {
    const { from } = { from: Date.UTC(2026, 5, 30, 14) }
    const { store, queries } = asked<ReportStore>({
      usageOverTime: () => [
        { at: from, ...sums(2, 3n) },
        { at: from + HOUR_MS, ...sums(1, 1n) },
      ],
      largestGroups: () => ['b', 'a'],
      groupsOverTime: () => [
        { at: from, group: 'a', ...sums(1, 1n) },
        { at: from, group: 'b', ...sums(2, 3n) },
      ],
    })
    const period = { from: '2026-07-01', to: '2026-07-01', model: '', key: 'key_1' }
    const report = (await usageOverview(store, 'ws', period, 'model', (group) => group.toUpperCase())) as {
      total: { requests: number; amount: string }
      times: number[]
      series: object[]
      groups: object[]
      unit: string
    }
    const query = {
      workspaceId: 'ws',
      from,
      to: from + DAY_MS,
      unit: 'hour',
      model: undefined,
      keyId: 'key_1',
      groupBy: 'model',
    }
    assert.deepEqual(queries, [
      ['usageOverTime', query],
      ['largestGroups', { ...query, limit: 6 }],
      ['groupsOverTime', { ...query, groups: ['b', 'a'] }],
    ])
    const view = (requests: number, amount: string, times = 1) => ({
      requests,
      input_tokens: 10 * times,
      cached_input_tokens: 4 * times,
      output_tokens: 5 * times,
      images: times,
      audio_ms: 7 * times,
      amount,
    })
    assert.deepEqual(report.total, view(3, '4.00', 2))
    assert.deepEqual(report.series, [
      { at: from, ...view(2, '3.00') },
      { at: from + HOUR_MS, ...view(1, '1.00') },
    ])
    assert.deepEqual(report.groups, [
      { group: 'B', ...view(2, '3.00'), series: [{ at: from, requests: 2, amount: '3.00' }] },
      { group: 'A', ...view(1, '1.00'), series: [{ at: from, requests: 1, amount: '1.00' }] },
    ])
    assert.deepEqual([report.unit, report.times.length, report.times[1]], ['hour', 24, from + HOUR_MS])
  })
})

describe('a month', () => {
  const now = Date.UTC(2026, 6, 20, 3, 30)
  const hour = Date.UTC(2026, 6, 20, 3)
  const [begin, end] = [Date.UTC(2026, 5, 30, 14), Date.UTC(2026, 6, 31, 14)]
  const workspace = { id: 'ws', spendLimit: { amount: 100n * AUD, isSoft: false } } as unknown as Workspace

  async function report(firstDay: number | undefined, limit: Workspace['spendLimit'] = workspace.spendLimit) {
    const { store, queries } = asked<UsageStore>({
      usageTotal: ({ from }: { from: number }) => sums(1, from === begin ? 40n : 14n),
      usageSums: () => (firstDay === undefined ? [] : [{ group: String(firstDay), ...sums(1, 1n) }]),
    })
    const made = await monthOverview(store, { ...workspace, spendLimit: limit }, now)
    return { made: made as Record<string, unknown>, queries }
  }

  it('has what was spent, the pace of the last seven days, and the forecast', async () => {
    const { made, queries } = await report(Date.UTC(2026, 5, 1, 14))
    const scope = { workspaceId: 'ws', groupBy: 'day', creditNote: '', withoutCredits: true }
    assert.deepEqual(queries, [
      ['usageTotal', { ...scope, from: begin, to: end }],
      ['usageSums', { ...scope, from: Date.UTC(2026, 4, 31, 14), to: hour + HOUR_MS, limit: 1 }],
      ['usageTotal', { ...scope, from: hour - 7 * DAY_MS, to: hour + HOUR_MS }],
    ])
    const { per_day, forecast, reaches_limit_at, ...rest } = made
    assert.deepEqual(rest, {
      object: 'month.report',
      month: '2026-07',
      from: begin,
      to: end,
      now,
      spent: '40.00',
      pace_days: 7,
      spend_limit: '100.00',
      spend_limit_kind: 'hard',
    })
    // 14 dollars in seven days and half an hour.
    assert.match(String(per_day), /^1\.99\d+$/)
    assert.match(String(forecast), /^62\.\d+$/)
    assert.equal(reaches_limit_at, null)
  })

  it('has a pace from the day after the first use on', async () => {
    const recent = await report(Date.UTC(2026, 6, 15, 14))
    assert.equal(recent.queries[2]?.[1]['from'], Date.UTC(2026, 6, 16, 14))
    assert.equal(recent.made['pace_days'], 3)
    for (const firstDay of [undefined, Date.UTC(2026, 6, 19, 14)]) {
      const { made, queries } = await report(firstDay)
      assert.equal(queries[2]?.[1]['from'], hour + HOUR_MS)
      assert.deepEqual([made['pace_days'], made['per_day'], made['forecast']], [0, null, null])
    }
  })

  it('reports when it reaches a limit, and whether that is soft', async () => {
    const { made } = await report(Date.UTC(2026, 5, 1, 14), {
      amount: 50n * AUD,
      isSoft: true,
    })
    assert.equal(made['spend_limit_kind'], 'soft')
    assert.match(String(made['reaches_limit_at']), /^2026-07-25T0\d:/)
    const { made: without } = await report(Date.UTC(2026, 5, 1, 14), null)
    assert.deepEqual(
      [without['spend_limit'], without['spend_limit_kind'], without['reaches_limit_at']],
      [null, null, null],
    )
  })
})

describe('a list of requests', () => {
  const list = async (query: object, next?: object) => {
    const { store, queries } = asked<ReportStore>({ recentRequests: () => ({ rows: [], next }) })
    const made = (await requestList(store, 'ws', query)) as { next: string | null }
    return { made, query: queries[0]?.[1] ?? {} }
  }

  it('is a page of 50, starting where the page before ended', async () => {
    const { made, query } = await list({}, { settledAt: 5, requestId: 'r-1' })
    assert.deepEqual([query['limit'], query['before'], query['outcome']], [50, undefined, undefined])
    assert.equal(made.next, '5_r-1')
    const later = await list({ before: made.next, limit: 7, outcome: 'failed', model: 'm', key: '' })
    assert.deepEqual([later.query['limit'], later.query['outcome']], [7, 'failed'])
    assert.deepEqual([later.query['model'], later.query['keyId']], ['m', undefined])
    assert.deepEqual(later.query['before'], { settledAt: 5, requestId: 'r-1' })
    assert.equal(later.made.next, null)
    assert.deepEqual((await list({ before: '123456789012345_' })).query['before'], {
      settledAt: 123_456_789_012_345,
      requestId: '',
    })
  })

  it('is refused with a start that no page returned', async () => {
    for (const before of ['', '5', '_r', 'x_r', '1234567890123456_r', `5_${'r'.repeat(101)}`, '5_r r']) {
      await assert.rejects(list({ before }), { code: 'invalid_value', param: 'before' }, before)
    }
    assert.ok(await list({ before: `5_${'r'.repeat(100)}` }))
  })
})

describe('how long requests took', () => {
  const from = Date.UTC(2026, 5, 30, 14)
  const request = (at: number, model: string): SampledRequest => ({
    model,
    keyId: `key of ${model}`,
    outcome: 'completed',
    outputTokens: 0,
    queueWaitMs: 1,
    firstTokenMs: 2,
    durationMs: 3,
    settledAt: at,
  })
  interface Report {
    readonly requests: number
    readonly of_requests: number
    readonly is_complete: boolean
    readonly buckets: readonly { readonly at: number; readonly requests: number }[]
    readonly groups: readonly { readonly group: string; readonly requests: number }[]
  }

  async function overview(
    requests: number,
    filter: object = {},
    {
      groupBy = 'model',
      now = from + 2 * HOUR_MS,
      days = '2026-07-01',
      hours = 1,
    }: {
      readonly groupBy?: 'model' | 'key'
      readonly now?: number
      readonly days?: string
      readonly hours?: number
    } = {},
  ) {
    const { store, queries } = asked<ReportStore>({
      usageOverTime: () =>
        Array.from({ length: hours }, (_, at) => ({ at: from + at * HOUR_MS, ...sums(at === 0 ? requests : 1, 1n) })),
      largestGroups: () => (groupBy === 'model' ? ['a', 'c'] : ['key of a']),
      sampledRequests: () => [request(from, 'a'), request(from + HOUR_MS, 'b'), request(from + 1, 'a')],
    })
    const report = (await latencyOverview(
      clientOf('ws'),
      store,
      'ws',
      { from: '2026-07-01', to: days, ...filter },
      groupBy,
      now,
    )) as Report
    const sample = queries.find(([name]) => name === 'sampledRequests')?.[1] as {
      spans: { from: number; to: number }[]
      rowsOfEach: number
    }
    return { report, queries, sample }
  }

  it('is sampled from the hours that have begun, in at most 100 spans', async () => {
    const { report, sample, queries } = await overview(3)
    // Three hours have begun: 33 spans each.
    assert.equal(sample.spans.length, 99)
    assert.deepEqual(
      [sample.spans[0], sample.spans.at(-1)?.to],
      [{ from, to: from + Math.round(HOUR_MS / 33) }, from + 3 * HOUR_MS],
    )
    for (const [index, { from: start }] of sample.spans.entries()) {
      if (index > 0) assert.equal(start, sample.spans[index - 1]?.to)
    }
    assert.equal(sample.rowsOfEach, Math.floor(5000 / 99))
    assert.deepEqual(queries.find(([name]) => name === 'largestGroups')?.[1]['limit'], 6)
    assert.deepEqual([report.requests, report.of_requests, report.is_complete], [3, 3, true])
    assert.deepEqual(
      report.buckets.map(({ at, requests }) => [at, requests]),
      [
        [from, 2],
        [from + HOUR_MS, 1],
      ],
    )
    assert.deepEqual(
      report.groups.map(({ group, requests }) => [group, requests]),
      [
        ['a', 2],
        ['c', 0],
      ],
    )
    assert.equal((await overview(4)).report.is_complete, false)
  })

  it('is read for one caller at a time, for the next one meanwhile, and not for a caller who has left', async () => {
    const { opened, open } = gate()
    const { store, queries } = asked<ReportStore>({
      usageOverTime: () => opened.then(() => []),
      largestGroups: () => [],
      sampledRequests: () => [],
    })
    const days = { from: '2026-07-01', to: '2026-07-01' }
    const reports = ['acme', 'acme', 'other'].map((owner) =>
      latencyOverview(clientOf(owner), store, owner, days, 'model', from),
    )
    reports.push(latencyOfWorkspaces(clientOf('acme'), store, days, from, String))
    const left = { ...clientOf('other'), onGone: (leave: () => void) => (queueMicrotask(leave), () => {}) }
    await assert.rejects(latencyOverview(left, store, 'left', days, 'model', from), CallerLeft)
    const read = () =>
      queries.flatMap(([name, query]) =>
        name === 'usageOverTime' ? [(query as { workspaceId?: string }).workspaceId ?? 'all'] : [],
      )
    assert.deepEqual(read(), ['acme', 'other'])
    open()
    await Promise.all(reports)
    assert.deepEqual(read(), ['acme', 'other', 'acme', 'all'])
  })

  it('over all workspaces is sampled in each of those that cost most, by its own index', async () => {
    const { store, queries } = asked<ReportStore>({
      usageOverTime: ({ workspaceId }: { workspaceId: string | undefined }) => [
        { at: from, ...sums(workspaceId === undefined ? 9000 : 2, 1n) },
      ],
      largestGroups: () => ['ws-1', 'ws-2'],
      sampledRequests: ({ workspaceId }: { workspaceId: string }) =>
        workspaceId === 'ws-1' ? [request(from, 'a'), request(from + HOUR_MS, 'a')] : [request(from + 1, 'a')],
    })
    const days = { from: '2026-07-01', to: '2026-07-01', model: 'a' }
    const report = (await latencyOfWorkspaces(
      clientOf('operator'),
      store,
      days,
      from + 2 * HOUR_MS,
      (id) => `name of ${id}`,
    )) as Report
    assert.deepEqual([report.requests, report.of_requests, report.is_complete], [3, 9000, false])
    assert.deepEqual(
      report.groups.map(({ group, requests }) => [group, requests]),
      [
        ['name of ws-1', 2],
        ['name of ws-2', 1],
      ],
    )
    assert.deepEqual(
      report.buckets.map(({ at, requests }) => [at, requests]),
      [
        [from, 2],
        [from + HOUR_MS, 1],
      ],
    )
    const samples = queries.filter(([name]) => name === 'sampledRequests').map(([, it]) => it)
    assert.deepEqual(
      samples.map((it) => [it['workspaceId'], it['model'], it['spans'], it['rowsOfEach']]),
      ['ws-1', 'ws-2'].map((id) => [id, 'a', [{ from, to: from + HOUR_MS }], 5000]),
    )
    assert.partialDeepStrictEqual(queries.find(([name]) => name === 'largestGroups')?.[1], {
      workspaceId: undefined,
      groupBy: 'workspace',
      model: 'a',
      limit: 6,
    })
  })

  it('is by key on request', async () => {
    const { report } = await overview(3, {}, { groupBy: 'key' })
    assert.deepEqual(
      report.groups.map(({ group, requests }) => [group, requests]),
      [['key of a', 2]],
    )
  })

  it('has a span for each day of a long period', async () => {
    const { sample } = await overview(3, {}, { days: '2027-06-30', now: from + 300 * DAY_MS })
    assert.equal(sample.spans.length, 301)
    assert.deepEqual(sample.spans[0], { from, to: from + DAY_MS })
    assert.equal(sample.rowsOfEach, Math.floor(5000 / 301))
  })

  it('is read from the hours that have requests, if one model or key has few', async () => {
    for (const filter of [{ model: 'a' }, { key: 'k' }]) {
      const { sample, queries } = await overview(5000 - 1, filter, { hours: 2 })
      assert.deepEqual(sample.spans, [
        { from, to: from + HOUR_MS },
        { from: from + HOUR_MS, to: from + 2 * HOUR_MS },
      ])
      assert.equal(sample.rowsOfEach, 2500)
      assert.deepEqual(
        queries.filter(([name]) => name === 'usageOverTime').map(([, { unit }]) => unit),
        ['hour', 'hour'],
      )
    }
    assert.equal((await overview(5000, { model: 'a' }, { hours: 2 })).sample.spans.length, 99, 'they are many')
    assert.equal((await overview(0, { model: 'a' })).sample.spans.length, 0)
    assert.equal((await overview(0, { model: 'a' })).sample.rowsOfEach, 5000)
    const many = (await overview(1, { model: 'a' }, { hours: 1000 })).sample.spans
    assert.equal(many.length, 400)
    assert.deepEqual([many[0]?.from, many[1]?.from], [from, from + 3 * HOUR_MS])
  })
})
