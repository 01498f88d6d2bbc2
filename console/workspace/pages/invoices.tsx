import { useRoute } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import { useData } from '../../shared/data.ts'
import { count, date, exactAud, milliseconds } from '../../shared/format.ts'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Empty, Moment, PageHead, Ready, Table } from '../../shared/parts.tsx'
import {
  balanceColumns,
  Day,
  InvoiceView,
  NoInvoices,
  NumberOf,
  StateFilter,
  type InvoiceState,
} from '../../shared/invoice.tsx'
import { requestPath } from '../../shared/request-path.ts'
import { api, type Answer } from '../api.ts'

/** Invoices and adjustment notes, and one of them with its lines. */
export function InvoicesPage() {
  const [state, setState] = useState<InvoiceState | ''>('')
  const pages = usePages(
    (before: string | undefined, signal) =>
      api('invoices', {
        query: { ...(state === '' ? {} : { state }), ...(before === undefined ? {} : { before }) },
        signal,
      }),
    [state],
  )
  return (
    <>
      <PageHead title="Invoices" about="Tax invoices and adjustment notes, in Australian dollars." />
      <div class="row end">
        <StateFilter value={state} choose={setState} />
      </div>
      <Paged of={pages}>
        {(documents) =>
          documents.length === 0 ? (
            <NoInvoices state={state}>
              <Empty title="There are no invoices yet">The first one is issued after the end of a month.</Empty>
            </NoInvoices>
          ) : (
            <Table
              caption="Invoices"
              rows={documents}
              keyOf={({ number }) => number ?? ''}
              columns={[
                { title: 'Number', cell: (document) => <NumberOf document={document} /> },
                { title: 'Month', cell: ({ period }) => <span class="unbroken">{period}</span> },
                { title: 'Issued', cell: ({ issued }) => <Day of={issued} /> },
                { title: 'Due', cell: ({ due }) => <Day of={due} /> },
                { title: 'Total incl. GST', isNumber: true, cell: ({ total }) => exactAud(total) },
                ...balanceColumns,
                {
                  title: 'Document',
                  cell: ({ number }) => (
                    <a href={`/console/api/invoices/${number}?format=pdf`} target="_blank" rel="noreferrer">
                      PDF
                    </a>
                  ),
                },
              ]}
            />
          )
        }
      </Paged>
    </>
  )
}

export function InvoicePage() {
  const number = useRoute().params['number'] ?? ''
  const loaded = useData((signal) => api('invoice', { path: { number }, signal }), [number])
  return (
    <>
      {loaded.state === 'ready' ? null : <PageHead title={number} />}
      <Ready of={loaded}>
        {(invoice) => (
          <>
            <PageHead
              title={`${invoice.title} ${invoice.number ?? ''}`}
              about={`${date(invoice.period_from)} to ${date(invoice.period_to)}`}
            >
              <a class="button" href={`/console/api/invoices/${number}?format=pdf`} target="_blank" rel="noreferrer">
                PDF
              </a>
            </PageHead>
            <InvoiceView of={invoice} isForMember />
          </>
        )}
      </Ready>
    </>
  )
}

/** The requests behind one line of an invoice, page by page, with what each adds to the line. */
export function InvoiceLinePage() {
  const { number = '', line = '1' } = useRoute().params
  const [about, setAbout] = useState<Pick<Answer<'invoiceLine'>, 'description' | 'unit'>>()
  const pages = usePages(
    async (after: string | undefined, signal) => {
      const query = { limit: 50, ...(after === undefined ? {} : { after }) }
      const { description, unit, data, next } = await api('invoiceLine', { path: { number, line }, query, signal })
      setAbout({ description, unit })
      return { data, next }
    },
    [number, line],
  )
  return (
    <>
      <PageHead title={`${number}, line ${line}`} about={about?.description} />
      <Paged of={pages} titles={['Earlier', 'Later']}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="This line has no requests" />
          ) : (
            <Table caption="Requests" rows={rows} keyOf={(it) => it.request_id} columns={lineColumns(about?.unit)} />
          )
        }
      </Paged>
    </>
  )
}

type LineRow = Answer<'invoiceLine'>['data'][number]

const lineColumns = (unit: Answer<'invoiceLine'>['unit'] | undefined) => [
  {
    title: 'Settled',
    cell: ({ request_id: id, settled }: LineRow) => (
      <a href={requestPath(id)}>
        <Moment at={settled} />
      </a>
    ),
  },
  {
    title: 'Outcome',
    cell: ({ outcome, estimated, reason }: LineRow) =>
      [outcome.replaceAll('_', ' '), ...(estimated ? ['estimated'] : []), ...(reason === null ? [] : [reason])].join(
        ', ',
      ),
  },
  { title: 'Quantity', isNumber: true, cell: ({ quantity }: LineRow) => quantityText(Number(quantity), unit) },
  { title: 'Part of the line', isNumber: true, cell: ({ amount }: LineRow) => exactAud(amount) },
]

function quantityText(quantity: number, unit: Answer<'invoiceLine'>['unit'] | undefined): string {
  const isTime = unit === 'audio_minutes' || unit === 'capacity_hours' || unit === 'rounding'
  return isTime ? milliseconds(quantity) : count(quantity)
}
