import { useLocation } from 'preact-iso/router'
import { CacheSection } from '../../shared/cache-use.tsx'
import { useData } from '../../shared/data.ts'
import { aud, brief, count, date, milliseconds, percent, sydneyDate } from '../../shared/format.ts'
import { Empty, Figures, Meter, PageHead, Ready, Segments, Table } from '../../shared/parts.tsx'
import { REFUSED_SHOWN, RefusedSection } from '../../shared/refused.tsx'
import { api, type Answer } from '../api.ts'
import { modelPath } from '../model-facts.ts'
import { RequestsTable, RequestSearch, type RequestFilter } from '../requests.tsx'
import { TimesAndFailures, UsageCharts } from '../usage-charts.tsx'

/** What the workspace used and what it cost. The period, the grouping and the filter are in the address. */

type Report = Answer<'usageReport'>
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
  /** By model, a single key can be selected; by key, a single model. */
  const filter: Group = group === 'model' ? 'key' : 'model'
  const only = query[filter] ?? ''
  const shown: RequestFilter = only === '' ? {} : { [filter]: only }
  const show = (changes: Record<string, string>): void =>
    route(`/console/usage?${new URLSearchParams({ days, by: group, [filter]: only, ...changes }).toString()}`, true)
  const to = sydneyDate(Date.now())
  const from = sydneyDate(Date.now() - (Number(days) - 1) * DAY_MS)
  const month = useData((signal) => api('monthReport', { signal }))
  const usage = useData(
    async (signal) => {
      const query = { from, to, group_by: group, ...shown }
      const [report, latency] = await Promise.all([
        api('usageReport', { query, signal }),
        api('latencyReport', { query, signal }),
      ])
      return { report, latency, group }
    },
    [days, group, only],
  )
  const known = useData(async (signal) => {
    const [keys, models] = await Promise.all([
      api('keys', { query: { limit: 500 }, signal }),
      api('models', { signal }),
    ])
    return {
      key: keys.data.map(({ id, name }) => [id, name ?? id] as const),
      model: models.data.map(({ id }) => [id, id] as const),
    }
  })
  const names: ReadonlyMap<string, string> = new Map(known.state === 'ready' ? known.data.key : [])
  const nameOf = (id: string): string => names.get(id) ?? id
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
          choose={(next) => route(`/console/usage?${new URLSearchParams({ days, by: next }).toString()}`, true)}
        />
        <Only
          of={filter}
          value={only}
          options={known.state === 'ready' ? known.data[filter] : []}
          choose={(next) => show({ [filter]: next })}
        />
        <a
          class="button"
          href={`/api/v1/usage?${new URLSearchParams({ from, to, ...shown, format: 'csv' }).toString()}`}
          download
        >
          Export CSV
        </a>
      </div>
      <Ready of={usage}>
        {({ report, latency, group: grouped }) =>
          report.total.requests === 0 ? (
            <Empty title="Nothing was used in this period">
              <a href="/console/playground">Try a model</a>
            </Empty>
          ) : (
            <>
              <Totals report={report} />
              <UsageCharts report={report} nameOf={nameOf} />
              <Groups report={report} group={grouped} nameOf={nameOf} />
              <TimesAndFailures report={report} latency={latency} nameOf={nameOf} />
            </>
          )
        }
      </Ready>
      <CacheSection
        load={(signal) => api('usageCache', { signal })}
        columns={[
          {
            title: 'Key',
            cell: ({ key }) => nameOf(key),
          },
        ]}
      />
      <section class="stack" aria-labelledby="requests">
        <h2 id="requests">Requests</h2>
        {only === '' ? null : <p class="small soft">Of {nameOf(only)} alone.</p>}
        <RequestsTable filter={shown} />
      </section>
      <RefusedSection
        load={(signal) =>
          api('usageRefused', {
            query: { from, to, limit: REFUSED_SHOWN, ...(filter === 'key' && only !== '' ? { key: only } : {}) },
            signal,
          })
        }
        dependencies={[days, filter, only]}
        whose={{ title: 'Key', cell: ({ key_id }) => (key_id === null ? 'other keys' : nameOf(key_id)) }}
      />
    </>
  )
}

/** The scope of the charts: everything, or one model or key. */
function Only({
  of,
  value,
  options,
  choose,
}: {
  of: Group
  value: string
  options: readonly (readonly [id: string, name: string])[]
  choose: (id: string) => void
}) {
  const isListed = value === '' || options.some(([id]) => id === value)
  return (
    <select
      aria-label={of === 'key' ? 'Only one key' : 'Only one model'}
      class="choice"
      value={value}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      <option value="">{of === 'key' ? 'All keys' : 'All models'}</option>
      {isListed ? null : <option value={value}>{value}</option>}
      {options.map(([id, name]) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
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
          <dt>{month.per_day === null ? 'Pace' : `Pace, over ${days(month.pace_days)}`}</dt>
          <dd>
            {month.per_day === null ? (
              <small>after a day of use</small>
            ) : (
              <>
                {aud(month.per_day)} <small>/ day</small>
              </>
            )}
          </dd>
        </div>
        <div>
          <dt>Forecast for the month</dt>
          <dd>{month.forecast === null ? <small>after three days of use</small> : aud(month.forecast)}</dd>
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
            {percent(limit > 0 ? Number(month.spent) / limit : 1)} of the limit is spent. {limitText(month, limit)}
          </p>
        </>
      )}
    </section>
  )
}

function limitText(month: Answer<'monthReport'>, limit: number): string {
  if (Number(month.spent) >= limit) {
    return month.spend_limit_kind === 'soft'
      ? 'The limit is reached. It is a soft one, so requests go on.'
      : 'The limit is reached: requests are refused until the month is over, or the operator raises it.'
  }
  if (month.forecast === null) return ''
  return month.reaches_limit_at === null
    ? 'At this pace the limit is not reached this month.'
    : `At this pace the limit is reached on ${date(month.reaches_limit_at)}.`
}

const days = (count: number): string => (count === 1 ? 'one day' : `${count} days`)

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
