import type { Operations } from '../generated/console-api.ts'
import { Facts, Table } from './parts.tsx'

/** An invoice with its lines. Each line leads to the rows it was made from. */
export type Invoice = Operations['invoice']['answer']

export function InvoiceView({ of: invoice, hasRows = false }: { of: Invoice; hasRows?: boolean }) {
  return (
    <>
      <section class="panel" aria-label="About this document">
        <Facts
          of={[
            ...(invoice.seller ? [['From', `${invoice.seller.name}, ABN ${invoice.seller.abn ?? '–'}`] as const] : []),
            ['To', `${invoice.buyer.name}${invoice.buyer.abn === null ? '' : `, ABN ${invoice.buyer.abn}`}`],
            ['Issued', invoice.issued ?? 'not yet: this is a preview'],
            ...(invoice.due === null ? [] : [['Due', invoice.due] as const]),
            ...(invoice.purchase_order === null ? [] : [['Purchase order', invoice.purchase_order] as const]),
            ...(invoice.adjusts === null ? [] : [['Adjusts', invoice.adjusts] as const]),
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
          { title: 'Quantity', isNumber: true, cell: (line) => line.quantity_text },
          { title: 'Rate', isNumber: true, cell: ({ rate, rate_per: per }) => `A$${rate} / ${per}` },
          { title: 'Amount', isNumber: true, cell: ({ amount }) => `A$${amount}` },
          ...(hasRows
            ? [
                {
                  title: 'Requests',
                  cell: ({ rows, index }: { rows: string; index: number }) => (
                    <>
                      <a href={`/console/invoices/${invoice.number}/${index + 1}`}>Show</a>{' '}
                      <a href={rows} download="rows.csv">
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
          of={[
            ['Subtotal, excl. GST', `A$${invoice.subtotal}`],
            ['GST', `A$${invoice.gst}`],
            ['Total, incl. GST', <strong key="total">A${invoice.total}</strong>],
          ]}
        />
      </section>
      {[...invoice.notices, ...invoice.warnings].map((text) => (
        <p key={text} class="small soft">
          {text}
        </p>
      ))}
    </>
  )
}
