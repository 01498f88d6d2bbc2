import { useRoute } from 'preact-iso'
import { useState } from 'preact/hooks'
import { send } from '../../shared/client.ts'
import { useData } from '../../shared/data.ts'
import { count, date, exactAud } from '../../shared/format.ts'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Empty, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { InvoiceView } from '../../shared/invoice.tsx'
import { api, type Answer } from '../api.ts'
import { requestColumns, type RequestRow } from '../requests.tsx'

/** Invoices and adjustment notes, and one of them with its lines. */
export function InvoicesPage() {
  const pages = usePages((before: string | undefined, signal) =>
    api('invoices', { query: before === undefined ? {} : { before }, signal }),
  )
  return (
    <>
      <PageHead title="Invoices" about="Tax invoices and adjustment notes, in Australian dollars." />
      <Paged of={pages}>
        {(documents) =>
          documents.length === 0 ? (
            <Empty title="There are no invoices yet">The first one comes after the end of a month.</Empty>
          ) : (
            <Table
              caption="Invoices"
              rows={documents}
              keyOf={({ number }) => number ?? ''}
              columns={[
                { title: 'Number', cell: ({ number }) => <a href={`/console/invoices/${number}`}>{number}</a> },
                { title: 'Kind', cell: ({ title }) => title },
                { title: 'Month', cell: ({ period }) => period },
                { title: 'Issued', cell: ({ issued }) => (issued === null ? '–' : date(issued)) },
                { title: 'Due', cell: ({ due }) => (due === null ? '–' : date(due)) },
                { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
                { title: 'Total incl. GST', isNumber: true, cell: ({ total }) => exactAud(total) },
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

/** The requests behind one line of an invoice, page by page. */
export function InvoiceLinePage() {
  const { number = '', line = '1' } = useRoute().params
  const [about, setAbout] = useState<string>()
  const pages = usePages(
    async (after: string | undefined, signal) => {
      const invoice = await api('invoice', { path: { number }, signal })
      const found = invoice.lines[Number(line) - 1]
      if (!found) return { data: [], next: null }
      setAbout(found.description)
      // The address of the rows is that of the CSV file.
      const [path = '', asked = ''] = found.rows.split('?')
      const query = new URLSearchParams(asked)
      query.set('format', 'json')
      query.set('limit', '50')
      if (after !== undefined) query.set('after', after)
      const response = await send(`${path}?${query.toString()}`, { signal })
      const { data, next } = (await response.json()) as Answer<'usage'>
      return { data: data as readonly RequestRow[], next }
    },
    [number, line],
  )
  return (
    <>
      <PageHead title={`${number}, line ${line}`} about={about} />
      <Paged of={pages} titles={['Earlier', 'Later']}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="This line has no requests" />
          ) : (
            <Table caption="Requests" rows={rows} keyOf={(it) => it.request_id} columns={requestColumns} />
          )
        }
      </Paged>
    </>
  )
}
