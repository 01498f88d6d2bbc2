import { useLocation } from 'preact-iso/router'
import { CacheSection } from '../../shared/cache-use.tsx'
import { ChartGroup } from '../../shared/chart.tsx'
import { graphIcon } from '../../shared/icons.ts'
import { useData } from '../../shared/data.ts'
import { brief, count, percent } from '../../shared/format.ts'
import { costColumn, Amount, Empty, Figures, PageHead, Ready, Segments, Table } from '../../shared/parts.tsx'
import { PeriodChoice, periodIn } from '../../shared/period.tsx'
import { UsageCharts } from '../../shared/usage-charts.tsx'
import { api, type Answer } from '../api.ts'
import { modelPath, workspacePath } from '../paths.ts'

/** What all workspaces used and what it cost. */

type Report = Answer<'usageReport'>
const groupings = [
  ['workspace', 'By workspace'],
  ['model', 'By model'],
  ['key', 'By key'],
] as const
type Grouping = (typeof groupings)[number][0]
export function UsagePage() {
  const { query, route } = useLocation()
  const period = periodIn(query)
  const { from, to } = period
  const group: Grouping = groupings.find(([it]) => it === query['by'])?.[0] ?? 'workspace'
  const address = (search: Readonly<Record<string, string>>): string =>
    `/console/usage?${new URLSearchParams(search).toString()}`
  const choosePeriod = (chosen: Readonly<Record<string, string>>): void => route(address({ ...chosen, by: group }))
  const loaded = useData(
    async (signal) => ({ report: await api('usageReport', { query: { from, to, group_by: group }, signal }), group }),
    [from, to, group],
  )
  return (
    <>
      <PageHead title="Usage" about="All workspaces. Amounts are in Australian dollars and exclude GST." />
      <div class="row">
        <PeriodChoice of={period} choose={choosePeriod} />
        <Segments
          label="By"
          value={group}
          options={groupings}
          choose={(next) => route(address({ ...period.query, by: next }), true)}
        />
      </div>
      <Ready of={loaded} shape="report">
        {({ report, group: grouped }) =>
          report.total.requests === 0 ? (
            <Empty icon={graphIcon} title="Nothing was used in this period">
              Choose other days above.
            </Empty>
          ) : (
            <ChartGroup choosePeriod={(first, last) => choosePeriod({ from: first, to: last })}>
              <Overview of={report} kind={grouped} />
            </ChartGroup>
          )
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
                <code class="small soft short-id" title={key}>
                  {key}
                </code>
              </>
            ),
          },
        ]}
      />
    </>
  )
}

const titles: Readonly<Record<Grouping, string>> = { workspace: 'Workspace', model: 'Model', key: 'Key' }
const pathOf: Readonly<Record<Grouping, (group: string) => string>> = {
  workspace: workspacePath,
  model: modelPath,
  key: (id) => `/console/requests?${new URLSearchParams({ key: id }).toString()}`,
}

function Overview({ of: report, kind }: { of: Report; kind: Grouping }) {
  const { total, groups } = report
  const cached = total.input_tokens > 0 ? total.cached_input_tokens / total.input_tokens : 0
  return (
    <>
      <Figures
        of={[
          ['Cost', <Amount key="cost" of={total.amount} />],
          ['Requests', count(total.requests)],
          ['Input', brief(total.input_tokens), 'tokens'],
          ['Cached', percent(cached), 'of the input'],
          ['Output', brief(total.output_tokens), 'tokens'],
        ]}
      />
      <UsageCharts report={report} kind={kind} nameOf={(group) => group} />
      <Table
        caption="Those that cost most"
        rows={groups}
        keyOf={({ group }) => group}
        columns={[
          { title: titles[kind], cell: ({ group }) => <a href={pathOf[kind](group)}>{group}</a> },
          { title: 'Requests', isNumber: true, cell: (it) => count(it.requests) },
          { title: 'Input tokens', isNumber: true, cell: (it) => count(it.input_tokens) },
          { title: 'Output tokens', isNumber: true, cell: (it) => count(it.output_tokens) },
          costColumn,
        ]}
      />
    </>
  )
}
