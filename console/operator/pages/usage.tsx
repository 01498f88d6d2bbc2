import { useLocation } from 'preact-iso/router'
import { CacheSection } from '../../shared/cache-use.tsx'
import { Chart } from '../../shared/chart.tsx'
import { useData } from '../../shared/data.ts'
import { aud, brief, count, percent, sydneyDate } from '../../shared/format.ts'
import { Empty, Figures, PageHead, Ready, Segments, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'

/** What all workspaces used and what it cost. */

type Report = Answer<'usageReport'>
const groupings = [
  ['workspace', 'By workspace'],
  ['model', 'By model'],
  ['key', 'By key'],
] as const
type Grouping = (typeof groupings)[number][0]
const periods = [
  ['1', 'Today'],
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
] as const

export function UsagePage() {
  const { query, route } = useLocation()
  const days = periods.find(([it]) => it === query['days'])?.[0] ?? '30'
  const group: Grouping = groupings.find(([it]) => it === query['by'])?.[0] ?? 'workspace'
  const to = sydneyDate(Date.now())
  const from = sydneyDate(Date.now() - (Number(days) - 1) * 86_400_000)
  const show = (changes: Record<string, string>): void =>
    route(`/console/usage?${new URLSearchParams({ days, by: group, ...changes }).toString()}`, true)
  const loaded = useData(
    (signal) => api('usageReport', { query: { from, to, group_by: group }, signal }),
    [days, group],
  )
  return (
    <>
      <PageHead title="Usage" about="All workspaces. Amounts are in Australian dollars and exclude GST." />
      <div class="row">
        <Segments label="Period" value={days} options={periods} choose={(next) => show({ days: next })} />
        <Segments label="By" value={group} options={groupings} choose={(next) => show({ by: next })} />
      </div>
      <Ready of={loaded}>
        {(report) =>
          report.total.requests === 0 ? <Empty title="Nothing was used in this period" /> : <Overview of={report} />
        }
      </Ready>
      <CacheSection
        load={(signal) => api('listCacheUse', { signal })}
        columns={[
          {
            title: 'Used by',
            cell: ({ workspace, key }) => (
              <>
                {workspace}
                <br />
                <code class="small soft">{key}</code>
              </>
            ),
          },
        ]}
      />
    </>
  )
}

function Overview({ of: { total, times, unit, series, groups } }: { of: Report }) {
  const along = (points: readonly { at: number; amount: string }[]): readonly number[] => {
    const byTime = new Map(points.map(({ at, amount }) => [at, Number(amount)]))
    return times.map((at) => byTime.get(at) ?? 0)
  }
  const requests = new Map(series.map((it) => [it.at, it.requests]))
  const cached = total.input_tokens > 0 ? total.cached_input_tokens / total.input_tokens : 0
  return (
    <>
      <Figures
        of={[
          ['Cost', aud(total.amount)],
          ['Requests', count(total.requests)],
          ['Input', brief(total.input_tokens), 'tokens'],
          ['Cached', percent(cached), 'of the input'],
          ['Output', brief(total.output_tokens), 'tokens'],
        ]}
      />
      <div class="charts">
        <Chart
          title="Cost"
          summary={`${aud(total.amount)} in all${groups[0] ? `; most by ${groups[0].group}, ${aud(groups[0].amount)}` : ''}.`}
          times={times}
          unit={unit}
          format={aud}
          lines={groups.map((it) => ({ title: it.group, values: along(it.series) }))}
        />
        <Chart
          title="Requests"
          summary={`${count(total.requests)} requests.`}
          times={times}
          unit={unit}
          format={brief}
          lines={[{ title: 'requests', values: times.map((at) => requests.get(at) ?? 0) }]}
        />
      </div>
      <Table
        caption="Those that cost most"
        rows={groups}
        keyOf={({ group }) => group}
        columns={[
          { title: 'Name', cell: ({ group }) => group },
          { title: 'Requests', isNumber: true, cell: (it) => count(it.requests) },
          { title: 'Input tokens', isNumber: true, cell: (it) => count(it.input_tokens) },
          { title: 'Output tokens', isNumber: true, cell: (it) => count(it.output_tokens) },
          { title: 'Cost', isNumber: true, cell: (it) => aud(it.amount) },
        ]}
      />
    </>
  )
}
