import { bytesText } from '../../../src/shared/bytes-text.ts'
import { Chart, ChartGroup } from '../../shared/chart.tsx'
import { useData } from '../../shared/data.ts'
import { count, milliseconds, sydneyDate } from '../../shared/format.ts'
import { reloadKey } from '../../shared/live.ts'
import { counts } from '../../shared/measures.ts'
import { costColumn, Amount, Figures, PageHead, Ready, Stale, State, Table, type Health } from '../../shared/parts.tsx'
import { RequestsChart } from '../../shared/usage-charts.tsx'
import { api, type Answer, type Sample } from '../api.ts'
import { attentionOf, DISK_LOW, type Attention, type OperatorState } from '../attention.ts'
import { FirstSteps } from '../first-steps.tsx'
import { live } from '../live.ts'
import { modelPath, workspacePath } from '../paths.ts'
import { LiveRequests } from '../live-requests.tsx'

/** The state of the service: what needs attention, health, traffic, spend, and requests as they are settled. */

const SHOWN = 5
const NOTICES_SHOWN = 4
/** Sums of the month change slowly, and cost more. */
const SLOWER = 6
const FAILURES_COUNTED = 200

export function OverviewPage() {
  const stream = live.use()
  const sample = stream.samples.at(-1)
  const reload = reloadKey(stream)
  const now = useData(
    async (signal) => {
      const today = sydneyDate(Date.now())
      const period = { from: today, to: today }
      const [health, engines, replicas, report, refused, newest, failed] = await Promise.all([
        api('operatorHealth', { signal }),
        api('listEngines', { signal }),
        api('listReplicas', { signal }),
        api('usageReport', { query: { ...period, group_by: 'model' }, signal }),
        api('listRefused', { query: { ...period, limit: 1 }, signal }),
        api('listRequests', { query: { limit: 1 }, signal }),
        api('listRequests', { query: { ...period, outcome: 'failed', limit: FAILURES_COUNTED }, signal }),
      ])
      return { health, engines: engines.data, replicas, report, refused, isUsed: newest.data.length > 0, failed }
    },
    [reload],
  )
  const month = useData(
    async (signal) => {
      const today = sydneyDate(Date.now())
      const period = { from: `${today.slice(0, 8)}01`, to: today }
      const [sums, workspaces, keys] = await Promise.all([
        api('listUsage', { query: { ...period, group_by: 'workspace', limit: 1000 }, signal }),
        api('listWorkspaces', { query: { limit: 1000 }, signal }),
        api('listKeys', { query: { state: 'valid', limit: 1 }, signal }),
      ])
      const spenders = sums.data.map(({ workspace = '', requests = 0, amount = '0' }) => ({
        workspace,
        requests,
        amount,
      }))
      const hasKey = keys.data.length > 0
      return { total: sums.total?.amount ?? '0', spenders, workspaces: workspaces.data, hasKey }
    },
    [Math.floor(reload / SLOWER)],
  )
  const today = sydneyDate(Date.now())
  return (
    <>
      <PageHead title="Overview" about="Days are days in Sydney. Amounts exclude GST." />
      <Stale is={stream.isStale} />
      <Ready of={now} shape="report">
        {({ health, engines, replicas, report, refused, isUsed, failed }) => (
          <>
            {!isUsed && month.state === 'ready' ? (
              <FirstSteps models={engines.length} workspaces={month.data.workspaces} hasKey={month.data.hasKey} />
            ) : null}
            <NeedsAttention
              of={{
                health,
                engines,
                replicas,
                lanes: sample?.lanes ?? [],
                workspaces: month.state === 'ready' ? month.data.workspaces : [],
                spent: new Map(
                  month.state === 'ready' ? month.data.spenders.map((it) => [it.workspace, it.amount]) : [],
                ),
              }}
            />
            <HealthTiles health={health} replicas={replicas} />
            <Figures of={[...loadOf(sample), ['Requests today', count(report.total.requests)]]} />
            <Figures
              of={[
                [
                  <a key="refused" href={`/console/requests?from=${today}`}>
                    Refused today
                  </a>,
                  count(refused.total),
                ],
                [
                  <a key="failed" href={`/console/requests?outcome=failed&from=${today}`}>
                    Failed today
                  </a>,
                  `${count(failed.data.length)}${failed.next === null ? '' : '+'}`,
                ],
                ['Cost today', <Amount key="today" of={report.total.amount} />],
                ['Cost this month', month.state === 'ready' ? <Amount key="month" of={month.data.total} /> : '…'],
              ]}
            />
            <div class="charts">
              <LoadChart samples={stream.samples} />
              <ChartGroup>
                <RequestsChart title="Requests today" report={report} kind="model" nameOf={(model) => model} />
              </ChartGroup>
            </div>
            <div class="columns">
              <section class="stack" aria-labelledby="models">
                <div class="row apart">
                  <h2 id="models">Top models today</h2>
                  <a href="/console/usage?days=1&by=model">Usage by model</a>
                </div>
                <Spenders
                  caption="Top models today"
                  title="Model"
                  rows={report.groups.map((it) => ({ ...it, name: it.group }))}
                  hrefOf={modelPath}
                />
              </section>
              <section class="stack" aria-labelledby="workspaces">
                <div class="row apart">
                  <h2 id="workspaces">Top workspaces this month</h2>
                  <a href="/console/usage?days=month&by=workspace">Usage by workspace</a>
                </div>
                <Ready of={month}>
                  {({ spenders }) => (
                    <Spenders
                      caption="Top workspaces this month"
                      title="Workspace"
                      rows={spenders.map((it) => ({ ...it, name: it.workspace }))}
                      hrefOf={workspacePath}
                    />
                  )}
                </Ready>
              </section>
            </div>
          </>
        )}
      </Ready>
      <LiveRequests
        sample={sample}
        models={now.state === 'ready' ? [...new Set(now.data.engines.map(({ model }) => model))] : []}
      />
    </>
  )
}

function NeedsAttention({ of: state }: { of: OperatorState }) {
  const found = attentionOf(state)
  return (
    <section class="stack tight" aria-label="What needs attention">
      {found.length === 0 ? <State is="good">Nothing needs attention</State> : null}
      {found.slice(0, NOTICES_SHOWN).map((it) => (
        <AttentionNotice key={it.title} of={it} />
      ))}
      {found.length > NOTICES_SHOWN ? (
        <details>
          <summary>{count(found.length - NOTICES_SHOWN)} more</summary>
          <div class="stack tight">
            {found.slice(NOTICES_SHOWN).map((it) => (
              <AttentionNotice key={it.title} of={it} />
            ))}
          </div>
        </details>
      ) : null}
    </section>
  )
}

function AttentionNotice({ of: { level, title, text, action } }: { of: Attention }) {
  return (
    <div class={`notice ${level}`}>
      <strong>{title}</strong>
      {text} <a href={action.href}>{action.title}</a>
    </div>
  )
}

const redisStates: Readonly<Record<Answer<'operatorHealth'>['coordination'], readonly [Health, string]>> = {
  alone: ['idle', 'Not used'],
  joined: ['good', 'Joined'],
  apart: ['bad', 'Unreachable'],
  stopped: ['bad', 'Unreachable, admits nothing'],
}

function HealthTiles({
  health: { engines, database, coordination, disk },
  replicas: { data: replicas },
}: {
  health: Answer<'operatorHealth'>
  replicas: Answer<'listReplicas'>
}) {
  const draining = replicas.filter((it) => it.draining).length
  const freeShare = disk.size_bytes > 0 ? disk.free_bytes / disk.size_bytes : 1
  const tiles: readonly (readonly [title: string, href: string, is: Health, text: string])[] = [
    [
      'Engines',
      '/console/engines',
      engines.down === 0 ? 'good' : engines.up === 0 ? 'bad' : 'warn',
      `${count(engines.up)} of ${count(engines.up + engines.down)} up`,
    ],
    [
      'Replicas',
      '/console/replicas',
      draining > 0 ? 'warn' : 'good',
      `${count(replicas.length - draining)} serving${draining > 0 ? `, ${count(draining)} draining` : ''}`,
    ],
    ['Database', '/console/replicas', database === 'up' ? 'good' : 'bad', database === 'up' ? 'Up' : 'Does not answer'],
    ['Redis', '/console/replicas', ...redisStates[coordination]],
    ['Disk', '/console/replicas', freeShare < DISK_LOW ? 'warn' : 'good', `${bytesText(disk.free_bytes)} free`],
  ]
  return (
    <dl class="figures health" aria-label="Health">
      {tiles.map(([title, href, is, text]) => (
        <div key={title}>
          <dt>
            <a href={href}>{title}</a>
          </dt>
          <dd>
            <State is={is}>{text}</State>
          </dd>
        </div>
      ))}
    </dl>
  )
}

/** What runs and waits now, and the longest waits. */
function loadOf(sample: Sample | undefined): readonly (readonly [label: string, value: string, note?: string])[] {
  const lanes = sample?.lanes ?? []
  const slowest = lanes
    .filter((it) => it.wait_ms_p95 !== null)
    .toSorted((one, other) => (other.wait_ms_p95 ?? 0) - (one.wait_ms_p95 ?? 0))[0]
  return [
    ['In flight', count(lanes.reduce((sum, it) => sum + it.in_flight_requests, 0))],
    ['Waiting', count(lanes.reduce((sum, it) => sum + it.queue_depth, 0))],
    ['Wait, 95 %', slowest ? milliseconds(slowest.wait_ms_p95 ?? 0) : '–', slowest ? noteOf(slowest) : 'none admitted'],
  ]
}

/** Which lane waits longest, if any does. */
const noteOf = ({ lane, wait_ms_p95: wait }: Sample['lanes'][number]): string => (wait === 0 ? 'in all lanes' : lane)

function LoadChart({ samples }: { samples: readonly Sample[] }) {
  const sums = (pick: (lane: Sample['lanes'][number]) => number): readonly number[] =>
    samples.map(({ lanes }) => lanes.reduce((sum, lane) => sum + pick(lane), 0))
  const waiting = sums((it) => it.queue_depth)
  const most = Math.max(0, ...waiting)
  return (
    <Chart
      title="Load"
      summary={`The last ten minutes, all lanes. ${most === 0 ? 'No request waited.' : `At most ${count(most)} waited.`}`}
      times={samples.map(({ at }) => at)}
      unit="second"
      kind="lines"
      measure={counts}
      lines={[
        { title: 'in flight', values: sums((it) => it.in_flight_requests) },
        { title: 'waiting', values: waiting },
      ]}
    />
  )
}

interface Spender {
  readonly name: string
  readonly requests: number
  readonly amount: string
}

function Spenders({
  caption,
  title,
  rows,
  hrefOf,
}: {
  caption: string
  title: string
  rows: readonly Spender[]
  hrefOf?: (name: string) => string
}) {
  if (rows.length === 0) return <p class="soft">Nothing was used.</p>
  return (
    <Table
      caption={caption}
      rows={rows.toSorted((one, other) => Number(other.amount) - Number(one.amount)).slice(0, SHOWN)}
      keyOf={({ name }) => name}
      columns={[
        { title, cell: ({ name }) => (hrefOf ? <a href={hrefOf(name)}>{name}</a> : name) },
        { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
        costColumn,
      ]}
    />
  )
}
