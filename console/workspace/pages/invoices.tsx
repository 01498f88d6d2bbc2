import { useRoute } from 'preact-iso'
import { useData } from '../../shared/data.ts'
import { count } from '../../shared/format.ts'
import { Empty, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { InvoiceView } from '../../shared/invoice.tsx'
import { api } from '../api.ts'

/** Invoices and adjustment notes, and one of them with its lines. */
export function InvoicesPage() {
  const loaded = useData((signal) => api('invoices', { signal }))
  return (
    <>
      <PageHead title="Invoices" about="Tax invoices and adjustment notes, in Australian dollars." />
      <Ready of={loaded}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="There are no invoices yet">The first one comes after the end of a month.</Empty>
          ) : (
            <Table
              caption="Invoices"
              rows={data}
              keyOf={({ number }) => number ?? ''}
              columns={[
                { title: 'Number', cell: ({ number }) => <a href={`/console/invoices/${number}`}>{number}</a> },
                { title: 'Kind', cell: ({ title }) => title },
                { title: 'Month', cell: ({ period }) => period },
                { title: 'Issued', cell: ({ issued }) => issued },
                { title: 'Due', cell: ({ due }) => due ?? '–' },
                { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
                { title: 'Total incl. GST', isNumber: true, cell: ({ total }) => `A$${total}` },
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
      </Ready>
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
              about={`${invoice.period_from} to ${invoice.period_to}`}
            >
              <a class="button" href={`/console/api/invoices/${number}?format=pdf`} target="_blank" rel="noreferrer">
                PDF
              </a>
            </PageHead>
            <InvoiceView of={invoice} hasRows />
          </>
        )}
      </Ready>
    </>
  )
}
