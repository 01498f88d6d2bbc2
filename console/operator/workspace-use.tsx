import { ChartGroup } from '../shared/chart.tsx'
import { keyIcon } from '../shared/icons.ts'
import { useData } from '../shared/data.ts'
import { count, date, exactAud, percent, sydneyDate } from '../shared/format.ts'
import { balanceColumns, NumberOf } from '../shared/invoice.tsx'
import { KeyState } from '../shared/keys.tsx'
import { Ago, Amount, Empty, Figures, Meter, Ready, Table } from '../shared/parts.tsx'
import { CostChart, RequestsChart } from '../shared/usage-charts.tsx'
import { api, type Answer, type Workspace } from './api.ts'
import { may } from './session.tsx'

/** What a workspace uses: its month against its limits, its last 30 days, its keys and its invoices. */

const DAY_MS = 86_400_000
const KEYS_SHOWN = 10
const INVOICES_SHOWN = 5

export function WorkspaceUse({ of: workspace }: { of: Workspace }) {
  const { name } = workspace
  const loaded = useData(
    async (signal) => {
      const to = sydneyDate(Date.now())
      const of = { workspace: name, to, group_by: 'model' as const }
      const [recent, month, keys, invoices] = await Promise.all([
        api('usageReport', { query: { ...of, from: sydneyDate(Date.now() - 29 * DAY_MS) }, signal }),
        api('usageReport', { query: { ...of, from: `${to.slice(0, 8)}01` }, signal }),
        may('listKeys') ? api('listKeys', { query: { workspace: name, limit: KEYS_SHOWN }, signal }) : undefined,
        api('listInvoices', { query: { workspace: name, limit: INVOICES_SHOWN }, signal }),
      ])
      return { recent, month: month.total, keys, invoices: invoices.data }
    },
    [name],
  )
  return (
    <Ready of={loaded}>
      {({ recent, month, keys, invoices }) => (
        <>
          <MonthOfWorkspace workspace={workspace} month={month} />
          <section class="stack" aria-labelledby="used">
            <div class="row apart">
              <h2 id="used">The last 30 days</h2>
              <a href={`/console/requests?workspace=${encodeURIComponent(name)}`}>Its requests</a>
            </div>
            {recent.total.requests === 0 ? (
              <Empty title="Nothing was used">Its requests appear here when they are settled.</Empty>
            ) : (
              <ChartGroup>
                <div class="charts">
                  <CostChart report={recent} kind="model" nameOf={(model) => model} />
                  <RequestsChart report={recent} kind="model" nameOf={(model) => model} />
                </div>
              </ChartGroup>
            )}
          </section>
          {keys ? <Keys of={keys} /> : null}
          <Invoices of={invoices} />
        </>
      )}
    </Ready>
  )
}

function MonthOfWorkspace({
  workspace: { spend_limit: limit, spend_limit_kind: kind, requests_per_minute: rate, tokens_per_minute: tokens },
  month,
}: {
  workspace: Workspace
  month: Answer<'usageReport'>['total']
}) {
  const spent = Number(month.amount)
  return (
    <>
      <Figures
        of={[
          ['Cost this month', <Amount key="spent" of={month.amount} />],
          ['Spend limit', limit === null ? 'none' : exactAud(limit), kind ?? ''],
          ['Requests this month', count(month.requests)],
          ['Rate limit', count(rate), `requests a minute${tokens === null ? '' : `, ${count(tokens)} tokens`}`],
        ]}
      />
      {limit === null ? null : (
        <div class="stack tight">
          <Meter value={spent} max={Number(limit)} label="Spent of the limit" />
          <p class="small soft">{percent(Number(limit) > 0 ? spent / Number(limit) : 1)} of the limit is spent.</p>
        </div>
      )}
    </>
  )
}

function Keys({ of: { data, next } }: { of: Answer<'listKeys'> }) {
  return (
    <section class="stack" aria-labelledby="keys">
      <div class="row apart">
        <h2 id="keys">Keys</h2>
        <a href="/console/keys">{next === null && may('revokeKey') ? 'Create or revoke keys' : 'All keys'}</a>
      </div>
      {data.length === 0 ? (
        <Empty icon={keyIcon} title="It has no keys">
          <a href="/console/keys">Create one</a>
        </Empty>
      ) : (
        <Table
          caption="Keys"
          rows={data}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Key',
              cell: ({ redacted, name }) => (
                <>
                  {name ?? <span class="soft">no name</span>}
                  <br />
                  <code class="small soft">{redacted}</code>
                </>
              ),
            },
            { title: 'State', cell: (key) => <KeyState of={key} /> },
            { title: 'Last used', cell: (key) => <Ago at={key.last_used_at} /> },
            { title: 'Created', cell: ({ created }) => date(created) },
          ]}
        />
      )}
    </section>
  )
}

function Invoices({ of: invoices }: { of: Answer<'listInvoices'>['data'] }) {
  return (
    <section class="stack" aria-labelledby="invoices">
      <div class="row apart">
        <h2 id="invoices">Invoices</h2>
        <a href="/console/invoices">{may('issueInvoice') ? 'Issue one' : 'All invoices'}</a>
      </div>
      {invoices.length === 0 ? (
        <p class="soft">It has none yet.</p>
      ) : (
        <Table
          caption="Invoices"
          rows={invoices}
          keyOf={({ number }) => number ?? ''}
          columns={[
            { title: 'Number', cell: (document) => <NumberOf document={document} /> },
            { title: 'Month', cell: ({ period }) => period },
            { title: 'Total incl. GST', isNumber: true, cell: ({ total }) => exactAud(total) },
            ...balanceColumns,
          ]}
        />
      )}
    </section>
  )
}
