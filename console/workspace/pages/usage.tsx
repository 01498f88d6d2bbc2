import { useLocation } from 'preact-iso'
import { CacheSection } from '../../shared/cache-use.tsx'
import { Chart } from '../../shared/chart.tsx'
import { useData } from '../../shared/data.ts'
import { aud, brief, count, date, milliseconds, percent, sydneyDate } from '../../shared/format.ts'
import { Empty, Figures, Meter, PageHead, Ready, Segments, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { modelPath } from '../model-facts.ts'
import { RequestsTable, RequestSearch } from '../requests.tsx'

/** What the workspace used and what it cost. The period and the grouping are in the address. */

type Report = Answer<'usageReport'>
type Latency = Answer<'latencyReport'>
type Group = 'model' | 'key'

const DAY_MS = 86_400_000
const periods = [
  ['1', 'Today'],
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
] as const
type Days = (typeof periods)[number][0]

export function UsagePage() {
  const { query, route } = useLocation()
  const days = (periods.some(([it]) => it === query['days']) ? query['days'] : '30') as Days
  const group: Group = query['by'] === 'key' ? 'key' : 'model'
  const show = (changes: Record<string, string>): void =>
    route(`/console/usage?${new URLSearchParams({ days, by: group, ...changes }).toString()}`, true)
  const to = sydneyDate(Date.now())
  const from = sydneyDate(Date.now() - (Number(days) - 1) * DAY_MS)
  const month = useData((signal) => api('monthReport', { signal }))
  const usage = useData(
    async (signal) => {
      const [report, latency, keys] = await Promise.all([
        api('usageReport', { query: { from, to, group_by: group }, signal }),
        api('latencyReport', { query: { from, to }, signal }),
        api('keys', { signal }),
      ])
      return { report, latency, names: new Map(keys.data.map(({ id, name }) => [id, name ?? id])) }
    },
    [days, group],
  )
  return (
    <>
      <PageHead title="Usage" about="Amounts are in Australian dollars and exclude GST. Days are days in Sydney.">
        <RequestSearch />
      </PageHead>
      <Ready of={month}>{(it) => <Month of={it} />}</Ready>
      <div class="row">
        <Segments label="Period" value={days} options={periods} choose={(next) => show({ days: next })} />
        <Segments
          label="By"
          value={group}
          options={[
            ['model', 'By model'],
            ['key', 'By key'],
          ]}
          choose={(next) => show({ by: next })}
        />
        <a class="button" href={`/api/v1/usage?from=${from}&to=${to}&format=csv`} download="usage.csv">
          Export CSV
        </a>
      </div>
      <Ready of={usage}>
        {({ report, latency, names }) =>
          report.total.requests === 0 ? (
            <Empty title="Nothing was used in this period">
              <a href="/console/playground">Try a model</a>
            </Empty>
          ) : (
            <>
              <Totals report={report} />
              <Charts
                report={report}
                latency={latency}
                nameOf={(id) => (group === 'key' ? (names.get(id) ?? id) : id)}
              />
              <Groups report={report} group={group} nameOf={(id) => names.get(id) ?? id} />
            </>
          )
        }
      </Ready>
      <CacheSection
        load={(signal) => api('usageCache', { signal })}
        columns={[
          {
            title: 'Key',
            cell: ({ key }) => (usage.state === 'ready' ? (usage.data.names.get(key) ?? key) : key),
          },
        ]}
      />
      <section class="stack" aria-labelledby="requests">
        <h2 id="requests">Requests</h2>
        <RequestsTable />
      </section>
    </>
  )
}

function Month({ of: month }: { of: Answer<'monthReport'> }) {
  const limit = month.spend_limit === null ? undefined : Number(month.spend_limit)
  const share = (month.now - month.from) / (month.to - month.from)
  return (
    <section class="panel stack" aria-labelledby="month">
      <div class="row apart">
        <h2 id="month">This month</h2>
        <span class="small soft">{percent(share)} of the month is over</span>
      </div>
      <dl class="month">
        <div>
          <dt>So far</dt>
          <dd>{aud(month.spent)}</dd>
        </div>
        <div>
          <dt>Pace, over seven days</dt>
          <dd>
            {aud(month.per_day)} <small>/ day</small>
          </dd>
        </div>
        <div>
          <dt>Forecast for the month</dt>
          <dd>{aud(month.forecast)}</dd>
        </div>
        <div>
          <dt>Spend limit{month.spend_limit_kind === 'soft' ? ', soft' : ''}</dt>
          <dd>{limit === undefined ? 'none' : aud(limit)}</dd>
        </div>
      </dl>
      {limit === undefined ? null : (
        <>
          <Meter value={Number(month.spent)} max={limit} label="Spent of the limit" />
          <p class="small soft">
            {percent(limit > 0 ? Number(month.spent) / limit : 1)} of the limit is spent.{' '}
            {month.reaches_limit_at === null
              ? 'At this pace the limit is not reached this month.'
              : `At this pace the limit is reached on ${date(month.reaches_limit_at)}.`}
          </p>
        </>
      )}
    </section>
  )
}

function Totals({ report: { total } }: { report: Report }) {
  const cached = total.input_tokens > 0 ? total.cached_input_tokens / total.input_tokens : 0
  return (
    <Figures
      of={[
        ['Cost', aud(total.amount)],
        ['Requests', count(total.requests)],
        ['Input', brief(total.input_tokens), 'tokens'],
        ['Cached', percent(cached), 'of the input'],
        ['Output', brief(total.output_tokens), 'tokens'],
        ...(total.images > 0 ? [['Images', count(total.images)] as const] : []),
        ...(total.audio_ms > 0 ? [['Audio', milliseconds(total.audio_ms)] as const] : []),
      ]}
    />
  )
}

function Charts({ report, latency, nameOf }: { report: Report; latency: Latency; nameOf: (id: string) => string }) {
  const { times, unit } = report
  const along = <Point extends { at: number }>(points: readonly Point[], pick: (point: Point) => number | null) => {
    const byTime = new Map(points.map((point) => [point.at, pick(point)]))
    return times.map((at) => byTime.get(at) ?? null)
  }
  const filled = (values: readonly (number | null)[]): readonly number[] => values.map((it) => it ?? 0)
  const costs = report.groups.map(({ group, series }) => ({
    title: nameOf(group),
    values: filled(along(series, ({ amount }) => Number(amount))),
  }))
  const shown = costs.map(({ values }) => values)
  const all = filled(along(report.series, ({ amount }) => Number(amount)))
  const others = all.map((value, index) => Math.max(0, value - shown.reduce((sum, it) => sum + (it[index] ?? 0), 0)))
  const hasOthers = others.some((it) => it > 1e-12)
  const failed = latency.buckets.reduce((sum, it) => sum + it.failed, 0)
  const sample = latency.is_complete ? '' : ` From the newest ${count(latency.requests)} requests.`
  const first = report.groups[0]
  return (
    <div class="charts">
      <Chart
        title="Cost"
        summary={`${aud(report.total.amount)} in all${first ? `; most for ${nameOf(first.group)}, ${aud(first.amount)}` : ''}.`}
        times={times}
        unit={unit}
        format={aud}
        lines={[...costs, ...(hasOthers ? [{ title: 'others', values: others }] : [])]}
      />
      <Chart
        title="Tokens"
        summary={`${count(report.total.input_tokens)} in, ${count(report.total.cached_input_tokens)} of them cached; ${count(report.total.output_tokens)} out.`}
        times={times}
        unit={unit}
        format={brief}
        lines={[
          { title: 'input', values: filled(along(report.series, (it) => it.input_tokens)) },
          { title: 'output', values: filled(along(report.series, (it) => it.output_tokens)) },
          { title: 'cached', values: filled(along(report.series, (it) => it.cached_input_tokens)) },
        ]}
      />
      <Chart
        title="Requests"
        summary={`${count(report.total.requests)} requests; ${count(failed)} of the newest ${count(latency.requests)} failed.`}
        times={times}
        unit={unit}
        format={brief}
        lines={[
          { title: 'requests', values: filled(along(report.series, (it) => it.requests)) },
          { title: 'failed', values: along(latency.buckets, (it) => it.failed) },
        ]}
      />
      <Chart
        title="First token and queue wait"
        summary={`95 of 100 requests take no longer than the upper lines.${sample}`}
        times={times}
        unit={unit}
        format={milliseconds}
        lines={[
          { title: 'first token, median', values: along(latency.buckets, (it) => it.first_token_ms.p50) },
          { title: 'first token, 95 %', values: along(latency.buckets, (it) => it.first_token_ms.p95) },
          { title: 'queue wait, 95 %', values: along(latency.buckets, (it) => it.queue_wait_ms.p95) },
        ]}
      />
    </div>
  )
}

function Groups({ report, group, nameOf }: { report: Report; group: Group; nameOf: (id: string) => string }) {
  return (
    <Table
      caption={group === 'model' ? 'Models that cost most' : 'Keys that cost most'}
      rows={report.groups}
      keyOf={(it) => it.group}
      columns={[
        {
          title: group === 'model' ? 'Model' : 'Key',
          cell: (it) => (group === 'model' ? <a href={modelPath(it.group)}>{it.group}</a> : nameOf(it.group)),
        },
        { title: 'Requests', isNumber: true, cell: (it) => count(it.requests) },
        { title: 'Input tokens', isNumber: true, cell: (it) => count(it.input_tokens) },
        {
          title: 'Cached',
          isNumber: true,
          cell: (it) => (it.input_tokens > 0 ? percent(it.cached_input_tokens / it.input_tokens) : '–'),
        },
        { title: 'Output tokens', isNumber: true, cell: (it) => count(it.output_tokens) },
        { title: 'Cost', isNumber: true, cell: (it) => aud(it.amount) },
      ]}
    />
  )
}
