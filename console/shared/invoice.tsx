import type { Operations } from '../generated/console-api.ts'
import { date, exactAud } from './format.ts'
import { Facts, Table } from './parts.tsx'

/** An invoice with its lines. Each line links to the rows behind it. */
export type Invoice = Operations['invoice']['answer']

/** A member sees the rows behind each line. Warnings are for the operator, who can do something about them. */
export function InvoiceView({ of: invoice, isForMember = false }: { of: Invoice; isForMember?: boolean }) {
  return (
    <>
      <section class="panel" aria-label="About this document">
        <Facts
          of={[
            ...(invoice.seller ? [['From', `${invoice.seller.name}, ABN ${invoice.seller.abn ?? '–'}`] as const] : []),
            ['To', `${invoice.buyer.name}${invoice.buyer.abn === null ? '' : `, ABN ${invoice.buyer.abn}`}`],
            ['Issued', invoice.issued === null ? 'not yet: this is a preview' : date(invoice.issued)],
            ...(invoice.due === null ? [] : [['Due', date(invoice.due)] as const]),
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
          { title: 'Amount', isNumber: true, cell: ({ amount }) => exactAud(amount) },
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
          ]}
        />
      </section>
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
