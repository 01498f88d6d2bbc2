import type { ComponentChildren } from 'preact'
import type { Operations } from '../generated/console-api.ts'
import { date, exactAud } from './format.ts'
import { Empty, Facts, Figures, State, Table, type Health } from './parts.tsx'

/** An invoice with its lines. Each line links to the rows behind it. */
export type Invoice = Operations['invoice']['answer']
type Balance = NonNullable<Invoice['balance']>
export type InvoiceState = Balance['state']

/** How each state is shown, and in which order a filter offers them. */
export const invoiceStates: Readonly<Record<InvoiceState, readonly [title: string, health: Health]>> = {
  due: ['Due', 'warn'],
  overdue: ['Overdue', 'bad'],
  refund_due: ['Refund due', 'warn'],
  paid: ['Paid', 'good'],
  credited: ['Credited in full', 'idle'],
}

export function StateOf({ balance }: { balance: Balance | null }) {
  if (balance === null) return <>–</>
  const [title, health] = invoiceStates[balance.state]
  return <State is={health}>{title}</State>
}

export function NumberOf({ document: { kind, title, number } }: { document: Invoice }) {
  return (
    <>
      <a href={`/console/invoices/${number}`}>{number}</a>
      {kind === 'adjustment_note' ? <small class="soft"> {title}</small> : null}
    </>
  )
}

/** A day, in one line. */
export function Day({ of: day }: { of: string | null }) {
  return <span class="unbroken">{day === null ? '–' : date(day)}</span>
}

/** For a list of documents. */
export const balanceColumns = [
  { title: 'State', cell: ({ balance }: Invoice) => <StateOf balance={balance} /> },
  {
    title: 'Amount due',
    isNumber: true,
    cell: ({ balance }: Invoice) => (balance === null ? '–' : exactAud(balance.amount_due)),
  },
]

/** An empty state shows documents in any state. */
export function StateFilter({
  value,
  choose,
}: {
  value: InvoiceState | ''
  choose: (state: InvoiceState | '') => void
}) {
  return (
    <label>
      State
      <select value={value} onChange={(event) => choose(event.currentTarget.value as InvoiceState | '')}>
        <option value="">All documents</option>
        {Object.entries(invoiceStates).map(([state, [title]]) => (
          <option key={state} value={state}>
            {title}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A list without documents, because of the filter or because there are none. */
export function NoInvoices({ state, children }: { state: InvoiceState | ''; children: ComponentChildren }) {
  if (state === '') return <>{children}</>
  return <Empty title={`No invoice is in the state “${invoiceStates[state][0]}”`} />
}

/** A member sees the rows behind each line. Warnings are for the operator, who can do something about them. */
export function InvoiceView({
  of: invoice,
  isForMember = false,
  paymentAction,
}: {
  of: Invoice
  isForMember?: boolean
  /** What can be done about a payment. */
  paymentAction?: (payment: Balance['payments'][number]) => ComponentChildren
}) {
  const decimals = Math.max(...invoice.lines.map(({ amount }) => amount.split('.')[1]?.length ?? 0))
  return (
    <>
      {invoice.balance === null ? null : (
        <Figures
          of={[
            [owes(invoice.balance), exactAud(invoice.balance.amount_due)],
            ...(invoice.due === null ? [] : [['Due', date(invoice.due)] as const]),
            ['State', <StateOf key="state" balance={invoice.balance} />],
          ]}
        />
      )}
      <section class="panel" aria-label="About this document">
        <Facts
          of={[
            ...(invoice.seller ? [['From', `${invoice.seller.name}, ABN ${invoice.seller.abn ?? '–'}`] as const] : []),
            ['To', `${invoice.buyer.name}${invoice.buyer.abn === null ? '' : `, ABN ${invoice.buyer.abn}`}`],
            ['Issued', invoice.issued === null ? 'not yet: this is a preview' : date(invoice.issued)],
            ...(invoice.purchase_order === null ? [] : [['Purchase order', invoice.purchase_order] as const]),
            ...(invoice.adjusts === null
              ? []
              : [['Adjusts', <a href={`/console/invoices/${invoice.adjusts}`}>{invoice.adjusts}</a>] as const]),
            ...(invoice.reason === null ? [] : [['Reason', invoice.reason] as const]),
          ]}
        />
      </section>
      <Table
        caption="Lines"
        rows={invoice.lines.map((line, index) => ({ ...line, index }))}
        keyOf={({ index }) => String(index)}
        columns={[
          { title: 'For', cell: ({ description }) => description },
          { title: 'Quantity', isNumber: true, cell: (line) => line.quantity_text.replace(/^-/, '−') },
          { title: 'Rate', isNumber: true, cell: ({ rate, rate_per: per }) => `${exactAud(rate)} / ${per}` },
          { title: 'Amount', isNumber: true, cell: ({ amount }) => exactAud(amount, decimals) },
          ...(isForMember
            ? [
                {
                  title: 'Requests',
                  cell: ({ rows, index }: { rows: string; index: number }) => (
                    <>
                      <a href={`/console/invoices/${invoice.number}/${index + 1}`}>Show</a>{' '}
                      <a href={rows} download>
                        CSV
                      </a>
                    </>
                  ),
                },
              ]
            : []),
        ]}
      />
      <section class="panel" aria-label="Totals">
        <Facts
          areAmounts
          of={[
            ['Subtotal, excl. GST', exactAud(invoice.subtotal)],
            ['GST', exactAud(invoice.gst)],
            ['Total, incl. GST', <strong key="total">{exactAud(invoice.total)}</strong>],
            ...(invoice.balance === null ? [] : owed(invoice.balance)),
          ]}
        />
      </section>
      {invoice.balance === null || invoice.balance.payments.length === 0 ? null : (
        <Table
          caption="Payments"
          rows={invoice.balance.payments}
          keyOf={({ id }) => String(id)}
          columns={[
            { title: 'Paid on', cell: ({ paid_on }) => date(paid_on) },
            { title: 'Reference', cell: ({ reference }) => reference },
            { title: 'Amount', isNumber: true, cell: ({ amount }) => exactAud(amount) },
            ...(paymentAction === undefined ? [] : [{ title: 'Action', isAction: true, cell: paymentAction }]),
          ]}
        />
      )}
      <div class="stack tight">
        {[...invoice.notices, ...(isForMember ? [] : invoice.warnings)].map((text) => (
          <p key={text} class="small soft">
            {text}
          </p>
        ))}
      </div>
    </>
  )
}

const owes = ({ amount_due: due }: Balance): string => (due.startsWith('-') ? 'To be paid back' : 'Amount due')

/** From the total to what is still owed. */
function owed(balance: Balance): (readonly [string, ComponentChildren])[] {
  const { credited, paid, amount_due: due } = balance
  return [
    ...(Number(credited) === 0 ? [] : [['Credited', exactAud(`-${credited}`)] as const]),
    ...(Number(paid) === 0 ? [] : [['Paid', exactAud(`-${paid}`)] as const]),
    [owes(balance), <strong key="due">{exactAud(due)}</strong>],
  ]
}
