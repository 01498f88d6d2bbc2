import { useLocation } from 'preact-iso/router'
import { CacheSection } from '../../shared/cache-use.tsx'
import { ChartGroup } from '../../shared/chart.tsx'
import { useData } from '../../shared/data.ts'
import { brief, count, milliseconds, percent } from '../../shared/format.ts'
import { costColumn, Amount, Empty, Figures, PageHead, Ready, Segments, Table } from '../../shared/parts.tsx'
import { PeriodChoice, periodIn } from '../../shared/period.tsx'
import { TimesAndFailures } from '../../shared/times-and-failures.tsx'
import { UsageCharts } from '../../shared/usage-charts.tsx'
import { api, type Answer } from '../api.ts'
import { modelPath } from '../model-facts.ts'
import { Month } from '../month.tsx'

/** What the workspace used and what it cost. The period, the grouping and the filter are in the address. */

type Report = Answer<'usageReport'>
type Group = 'model' | 'key'

export function UsagePage() {
  const { query, route } = useLocation()
  const period = periodIn(query)
  const { from, to } = period
  const group: Group = query['by'] === 'key' ? 'key' : 'model'
  /** By model, a single key can be selected; by key, a single model. */
  const filter: Group = group === 'model' ? 'key' : 'model'
  const only = query[filter] ?? ''
  const shown = only === '' ? {} : { [filter]: only }
  const address = (search: Readonly<Record<string, string>>): string =>
    `/console/usage?${new URLSearchParams(search).toString()}`
  const choosePeriod = (chosen: Readonly<Record<string, string>>): void =>
    route(address({ ...chosen, by: group, [filter]: only }))
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
    [from, to, group, only],
  )
  const known = useData(async (signal) => {
    const [keys, models] = await Promise.all([
      api('keys', { query: { limit: 500 }, signal }),
      api('models', { signal }),
    ])
    return {
      key: distinct(keys.data),
      model: models.data.map(({ id }) => [id, id] as const),
    }
  })
  const names: ReadonlyMap<string, string> = new Map(known.state === 'ready' ? known.data.key : [])
  const nameOf = (id: string): string => names.get(id) ?? id
  return (
    <>
      <PageHead title="Usage" about="Amounts are in Australian dollars and exclude GST. Days are days in Sydney.">
        <a class="button" href={`/console/requests?${new URLSearchParams({ from, to, ...shown }).toString()}`}>
          List the requests
        </a>
        <a
          class="button"
          href={`/api/v1/usage?${new URLSearchParams({ from, to, ...shown, format: 'csv' }).toString()}`}
          download
        >
          Export CSV
        </a>
      </PageHead>
      <Ready of={month}>{(it) => <Month of={it} />}</Ready>
      <div class="row">
        <PeriodChoice of={period} choose={choosePeriod} />
        <Segments
          label="By"
          value={group}
          options={[
            ['model', 'By model'],
            ['key', 'By key'],
          ]}
          choose={(next) => route(address({ ...period.query, by: next }), true)}
        />
        <Only
          of={filter}
          value={only}
          options={known.state === 'ready' ? known.data[filter] : []}
          choose={(next) => route(address({ ...period.query, by: group, [filter]: next }), true)}
        />
      </div>
      <Ready of={usage}>
        {({ report, latency, group: grouped }) =>
          report.total.requests === 0 ? (
            <Empty title="Nothing was used in this period">
              <a href="/console/playground">Try a model</a>
            </Empty>
          ) : (
            <ChartGroup choosePeriod={(first, last) => choosePeriod({ from: first, to: last })}>
              <Totals report={report} />
              <UsageCharts report={report} kind={grouped} nameOf={nameOf} />
              <Groups report={report} group={grouped} nameOf={nameOf} />
              <TimesAndFailures report={report} latency={latency} kind={grouped} nameOf={nameOf} />
            </ChartGroup>
          )
        }
      </Ready>
      <CacheSection
        load={(signal) => api('usageCache', { signal })}
        columns={[
          {
            title: 'Key',
            cell: ({ key }) => <span class="short-cell">{nameOf(key)}</span>,
          },
        ]}
      />
    </>
  )
}

/** Names of keys, or what is known of a key without one. Those that several keys have are followed by the end of the id. */
function distinct(keys: Answer<'keys'>['data']): readonly (readonly [id: string, name: string])[] {
  const named = Map.groupBy(keys, ({ name }) => name)
  return keys.map(({ id, name, redacted }) => [
    id,
    name === null ? redacted : (named.get(name)?.length ?? 0) > 1 ? `${name} (…${id.slice(-4)})` : name,
  ])
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

function Totals({ report: { total } }: { report: Report }) {
  const cached = total.input_tokens > 0 ? total.cached_input_tokens / total.input_tokens : 0
  return (
    <Figures
      of={[
        ['Cost', <Amount key="cost" of={total.amount} />],
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
        costColumn,
      ]}
    />
  )
}
