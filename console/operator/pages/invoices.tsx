import { useRoute } from 'preact-iso'
import { useState } from 'preact/hooks'
import { Problem, useAction } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { count, date, exactAud, sydneyDate } from '../../shared/format.ts'
import { InvoiceView } from '../../shared/invoice.tsx'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Dialog, Empty, Field, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { WorkspaceField } from '../workspace-field.tsx'

/** Invoices of all workspaces: preview, issue, credit. */

type Document = Answer<'previewInvoice'>

export function InvoicesPage() {
  const [workspace, setWorkspace] = useState('')
  const [filter, setFilter] = useState('')
  const pages = usePages(
    (before: string | undefined, signal) =>
      api('listInvoices', {
        query: {
          ...(filter === '' ? {} : { workspace: filter }),
          ...(before === undefined ? {} : { before }),
        },
        signal,
      }),
    [filter],
  )
  return (
    <>
      <PageHead title="Invoices" about="Tax invoices and adjustment notes of all workspaces." />
      <Preview issued={pages.reload} />
      <form
        class="row end"
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          setFilter(workspace)
        }}
      >
        <WorkspaceField label="Only of workspace" isRequired={false} value={workspace} choose={setWorkspace} />
        <button type="submit">Show</button>
      </form>
      <Paged of={pages}>
        {(documents) =>
          documents.length === 0 ? (
            <Empty title="No invoice has been issued yet" />
          ) : (
            <Table
              caption="Invoices"
              rows={documents}
              keyOf={({ number }) => number ?? ''}
              columns={[
                { title: 'Number', cell: ({ number }) => <a href={`/console/invoices/${number}`}>{number}</a> },
                { title: 'Kind', cell: ({ title }) => title },
                { title: 'Workspace', cell: ({ workspace }) => workspace },
                { title: 'Month', cell: ({ period }) => period },
                { title: 'Issued', cell: ({ issued }) => (issued === null ? '–' : date(issued)) },
                { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
                { title: 'Total incl. GST', isNumber: true, cell: ({ total }) => exactAud(total) },
              ]}
            />
          )
        }
      </Paged>
    </>
  )
}

function lastMonth(): string {
  const [year = 2026, month = 1] = sydneyDate(Date.now()).split('-').map(Number)
  return month === 1 ? `${year - 1}-12` : `${year}-${String(month - 1).padStart(2, '0')}`
}

function Preview({ issued }: { issued: () => void }) {
  const [workspace, setWorkspace] = useState('')
  const [period, setPeriod] = useState(lastMonth)
  const [document, setDocument] = useState<Document>()
  const action = useAction()
  const show = (load: () => Promise<Document>): Promise<boolean> => action.run(async () => setDocument(await load()))
  const body = { workspace, period }
  return (
    <section class="panel stack" aria-labelledby="preview">
      <h2 id="preview">Preview and issue</h2>
      <form
        class="row end"
        onSubmit={(event) => {
          event.preventDefault()
          void show(() => api('previewInvoice', { body }))
        }}
      >
        <WorkspaceField value={workspace} choose={setWorkspace} />
        <Field label="Month">
          <input type="month" required value={period} onInput={(event) => setPeriod(event.currentTarget.value)} />
        </Field>
        <button type="submit" disabled={workspace.trim() === '' || period === '' || action.isRunning}>
          Preview
        </button>
        {document !== undefined && document.number === null ? (
          <button
            type="button"
            class="primary"
            disabled={action.isRunning}
            onClick={() => void show(() => api('issueInvoice', { body })).then(issued)}
          >
            Issue the invoice
          </button>
        ) : null}
      </form>
      <Problem of={action} />
      {document === undefined ? null : <InvoiceView of={document} />}
    </section>
  )
}

export function InvoicePage() {
  const number = useRoute().params['number'] ?? ''
  const loaded = useData((signal) => api('getInvoice', { path: { number }, signal }), [number])
  const [isCrediting, setCrediting] = useState(false)
  return (
    <>
      {loaded.state === 'ready' ? null : <PageHead title={number} />}
      <Ready of={loaded}>
        {(document) => (
          <>
            <PageHead
              title={`${document.title} ${number}`}
              about={`${document.workspace}, ${date(document.period_from)} to ${date(document.period_to)}`}
            >
              <a class="button" href={`/admin/v1/invoices/${number}?format=pdf`} target="_blank" rel="noreferrer">
                PDF
              </a>
              {document.adjusts === null ? (
                <button type="button" onClick={() => setCrediting(true)}>
                  Credit
                </button>
              ) : null}
            </PageHead>
            <InvoiceView of={document} />
            {isCrediting ? <Credit of={document} close={() => setCrediting(false)} /> : null}
          </>
        )}
      </Ready>
    </>
  )
}

function Credit({ of: { workspace, period }, close }: { of: Document; close: () => void }) {
  const [amount, setAmount] = useState('')
  const [reason, setReason] = useState('')
  const [issued, setIssued] = useState<string>()
  const action = useAction()
  async function credit(): Promise<void> {
    const note = await api('creditInvoice', {
      body: { workspace, period, reason, ...(amount === '' ? { all: true } : { amount }) },
    })
    setIssued(`${note.title} ${note.number ?? ''}: ${exactAud(note.total)}.`)
  }
  return (
    <Dialog title={`Credit ${workspace}, ${period}`} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void action.run(credit)
        }}
      >
        <Field label="Amount in A$, excluding GST" hint="Empty: everything that is left of the invoice.">
          <input inputMode="decimal" value={amount} onInput={(event) => setAmount(event.currentTarget.value.trim())} />
        </Field>
        <Field label="Reason, printed on the note">
          <input required maxLength={1000} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </Field>
        <Problem of={action} />
        <div role="status">{issued === undefined ? null : <div class="notice">{issued}</div>}</div>
        <div class="row">
          <button
            type="submit"
            class="primary"
            disabled={reason.trim() === '' || action.isRunning || issued !== undefined}
          >
            Issue the note
          </button>
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      </form>
    </Dialog>
  )
}
