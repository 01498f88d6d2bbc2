import { useLocation } from 'preact-iso/router'
import { useEffect } from 'preact/hooks'
import { ChartGroup } from '../../shared/chart.tsx'
import { useData } from '../../shared/data.ts'
import { count, sydneyDate } from '../../shared/format.ts'
import { requestColumns } from '../../shared/request-columns.tsx'
import { reloadKey } from '../../shared/live.ts'
import { costColumn, Ago, Amount, Figures, Loading, PageHead, Ready, Stale, Table } from '../../shared/parts.tsx'
import { CostChart, RequestsChart } from '../../shared/usage-charts.tsx'
import { api, type Answer } from '../api.ts'
import { Arriving } from '../arriving.tsx'
import { live } from '../live.ts'
import { Month } from '../month.tsx'
import { session } from '../session.ts'

/** What the workspace spends, its limits, its newest requests and its keys. */

const DAY_MS = 86_400_000
const REQUESTS_SHOWN = 8
const KEYS_SHOWN = 5

export function OverviewPage() {
  const stream = live.use()
  const { route } = useLocation()
  const loaded = useData(
    async (signal) => {
      const now = Date.now()
      const week = { from: sydneyDate(now - 6 * DAY_MS), to: sydneyDate(now) }
      const [requests, month, report, keys] = await Promise.all([
        api('requests', { query: { limit: REQUESTS_SHOWN }, signal }),
        api('monthReport', { signal }),
        api('usageReport', { query: week, signal }),
        api('keys', { query: { state: 'valid', limit: 200 }, signal }),
      ])
      return { requests: requests.data, month, report, keys: keys.data }
    },
    [reloadKey(stream)],
  )
  const isUnused = loaded.state === 'ready' && loaded.data.requests.length === 0
  useEffect(() => {
    if (isUnused) route('/console/start', true)
  }, [isUnused])
  if (isUnused) return <Loading shape="report" />
  return (
    <>
      <PageHead title="Overview" about="Amounts are in Australian dollars and exclude GST." />
      <Stale is={stream.isStale} />
      <Arriving downloads={stream.samples.at(-1)?.downloads ?? []} />
      <Ready of={loaded} shape="report">
        {({ requests, month, report, keys }) => (
          <>
            <Month of={month} />
            <Today report={report} models={stream.samples.at(-1)?.models ?? []} />
            <section class="stack" aria-labelledby="week">
              <div class="row apart">
                <h2 id="week">The last seven days</h2>
                <a href="/console/usage?days=7">More about usage</a>
              </div>
              <ChartGroup choosePeriod={(from, to) => route(`/console/usage?from=${from}&to=${to}`)}>
                <div class="charts">
                  <CostChart report={report} kind="model" nameOf={(model) => model} />
                  <RequestsChart report={report} kind="model" nameOf={(model) => model} />
                </div>
              </ChartGroup>
            </section>
            <section class="stack" aria-labelledby="newest">
              <div class="row apart">
                <h2 id="newest">Newest requests</h2>
                <a href="/console/requests">All requests</a>
              </div>
              <Table
                caption="Newest requests"
                rows={requests}
                keyOf={({ request_id: id }) => id}
                columns={requestColumns()}
              />
            </section>
            <Keys of={keys} />
          </>
        )}
      </Ready>
    </>
  )
}

function Today({
  report: { times, series },
  models,
}: {
  report: Answer<'usageReport'>
  models: Answer<'live'>['models']
}) {
  const today = series.find(({ at }) => at === times.at(-1))
  return (
    <Figures
      of={[
        ['Cost today', <Amount key="today" of={today?.amount ?? '0'} />],
        ['Requests today', count(today?.requests ?? 0)],
        ['Rate limit', count(session.value?.requests_per_minute ?? 0), 'requests a minute'],
        ['Models ready', count(models.filter(({ available }) => available).length), `of ${count(models.length)}`],
      ]}
    />
  )
}

function Keys({ of: keys }: { of: Answer<'keys'>['data'] }) {
  const most = keys.toSorted((one, other) => Number(other.amount) - Number(one.amount))
  return (
    <section class="stack" aria-labelledby="keys">
      <div class="row apart">
        <h2 id="keys">Keys that cost most this month</h2>
        <a href="/console/keys">All keys</a>
      </div>
      <Table
        caption="Keys that cost most this month"
        rows={most.slice(0, KEYS_SHOWN)}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Key',
            cell: ({ id, redacted, name }) => (
              <a href={`/console/requests?key=${id}`}>{name ?? <code class="small">{redacted}</code>}</a>
            ),
          },
          { title: 'Last used', cell: (key) => <Ago at={key.last_used_at} /> },
          { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
          costColumn,
        ]}
      />
    </section>
  )
}
