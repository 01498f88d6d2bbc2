import { useRoute } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import { Confirm, Problem, useAction } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { amount, Field, Form } from '../../shared/form.tsx'
import { date, exactAud, sydneyDate, time } from '../../shared/format.ts'
import {
  balanceColumns,
  Day,
  InvoiceView,
  NoInvoices,
  NumberOf,
  StateFilter,
  type InvoiceState,
} from '../../shared/invoice.tsx'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Dialog, Empty, Facts, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { may, May } from '../session.tsx'
import { lastMonth } from './drafts.tsx'
import { WorkspaceField } from '../workspace-field.tsx'

/** Invoices of all workspaces: preview, issue, credit. */

type Document = Answer<'getInvoice'>
type Balance = NonNullable<Document['balance']>
type PaymentOf = Balance['payments'][number]

export function InvoicesPage() {
  const [workspace, setWorkspace] = useState('')
  const [filter, setFilter] = useState('')
  const [state, setState] = useState<InvoiceState | ''>('')
  const pages = usePages(
    (before: string | undefined, signal) =>
      api('listInvoices', {
        query: {
          ...(filter === '' ? {} : { workspace: filter }),
          ...(state === '' ? {} : { state }),
          ...(before === undefined ? {} : { before }),
        },
        signal,
      }),
    [filter, state],
  )
  return (
    <>
      <PageHead title="Invoices" about="Tax invoices and adjustment notes of all workspaces.">
        <a class="button primary" href="/console/invoices/drafts">
          Drafts of a month
        </a>
      </PageHead>
      <Preview issued={pages.reload} />
      <form
        class="row end"
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          setFilter(workspace)
        }}
      >
        <StateFilter value={state} choose={setState} />
        <WorkspaceField label="Only of workspace" isRequired={false} value={workspace} choose={setWorkspace} />
        <button type="submit">Show</button>
      </form>
      <Paged of={pages}>
        {(documents) =>
          documents.length === 0 ? (
            <NoInvoices state={state}>
              <Empty title="No invoice has been issued yet">
                <a href="/console/invoices/drafts">See the drafts of a month</a>
              </Empty>
            </NoInvoices>
          ) : (
            <Table
              caption="Invoices"
              rows={documents}
              keyOf={({ number }) => number ?? ''}
              columns={[
                { title: 'Number', cell: (document) => <NumberOf document={document} /> },
                { title: 'Workspace', cell: ({ workspace }) => workspace },
                { title: 'Month', cell: ({ period }) => <span class="unbroken">{period}</span> },
                { title: 'Issued', cell: ({ issued }) => <Day of={issued} /> },
                { title: 'Due', cell: ({ due }) => <Day of={due} /> },
                { title: 'Total incl. GST', isNumber: true, cell: ({ total }) => exactAud(total) },
                ...balanceColumns,
              ]}
            />
          )
        }
      </Paged>
    </>
  )
}

/** The preview, and the fields that it is for. */
interface Previewed {
  readonly workspace: string
  readonly period: string
  readonly document: Answer<'previewInvoice'>
}

function Preview({ issued }: { issued: () => void }) {
  const [workspace, setWorkspace] = useState('')
  const [period, setPeriod] = useState(lastMonth)
  const [previewed, setPreviewed] = useState<Previewed>()
  const [isIssuing, setIssuing] = useState(false)
  const action = useAction()
  const preview = async (): Promise<void> =>
    setPreviewed({ workspace, period, document: await api('previewInvoice', { body: { workspace, period } }) })
  /** The service refuses it if it no longer matches the preview. */
  async function issue({ workspace, period, document }: Previewed): Promise<void> {
    const { preview_id } = document
    if (preview_id === null) return
    const invoice = await api('issueInvoice', { body: { workspace, period, preview_id } })
    setPreviewed({ workspace, period, document: { ...invoice, preview_id: null } })
    issued()
  }
  // A preview that arrives after a field was changed is not shown either.
  const shown = previewed?.workspace === workspace && previewed.period === period ? previewed : undefined
  return (
    <section class="panel stack" aria-labelledby="preview">
      <h2 id="preview">Preview and issue</h2>
      <Form class="row end" action={action} submit={preview}>
        <WorkspaceField
          value={workspace}
          choose={(name) => {
            setWorkspace(name)
            setPreviewed(undefined)
          }}
        />
        <Field label="Month">
          <input
            name="period"
            type="month"
            required
            value={period}
            onInput={(event) => {
              setPeriod(event.currentTarget.value)
              setPreviewed(undefined)
            }}
          />
        </Field>
        <button type="submit" disabled={workspace.trim() === '' || period === '' || action.isRunning}>
          Preview
        </button>
        {shown === undefined || shown.document.preview_id === null || !may('issueInvoice') ? null : (
          <button type="button" class="primary" disabled={action.isRunning} onClick={() => setIssuing(true)}>
            Issue the invoice
          </button>
        )}
      </Form>
      <Problem of={action} />
      {shown === undefined ? null : <InvoiceView of={shown.document} />}
      {isIssuing && shown !== undefined ? (
        <Confirm title="Issue this invoice?" verb="Issue" act={() => issue(shown)} close={() => setIssuing(false)}>
          <Facts
            of={[
              ['Workspace', shown.document.workspace],
              ['Period', `${date(shown.document.period_from)} to ${date(shown.document.period_to)}`],
              ['Total, incl. GST', <strong key="total">{exactAud(shown.document.total)}</strong>],
            ]}
          />
          <p>An issued invoice is never changed. It can only be credited.</p>
        </Confirm>
      ) : null}
    </section>
  )
}

export function InvoicePage() {
  const number = useRoute().params['number'] ?? ''
  const loaded = useData((signal) => api('getInvoice', { path: { number }, signal }), [number])
  const [isCrediting, setCrediting] = useState(false)
  const [isPaying, setPaying] = useState(false)
  const [removed, setRemoved] = useState<PaymentOf>()
  const sending = useAction()
  const send = async (): Promise<void> => {
    await api('sendInvoice', { path: { number } })
    loaded.reload()
  }
  const closeCredit = (): void => {
    setCrediting(false)
    loaded.reload()
  }
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
              <May call="sendInvoice">
                <button type="button" disabled={sending.isRunning} onClick={() => void sending.run(send)}>
                  {document.email === null ? 'Send by e-mail' : 'Send again'}
                </button>
              </May>
              {document.adjusts === null && may('creditInvoice') ? (
                <button type="button" onClick={() => setCrediting(true)}>
                  Credit
                </button>
              ) : null}
              {document.balance === null ||
              Number(document.balance.amount_due) === 0 ||
              !may('recordPayment') ? null : (
                <button type="button" class="primary" onClick={() => setPaying(true)}>
                  {document.balance.state === 'refund_due' ? 'Record a refund' : 'Record a payment'}
                </button>
              )}
            </PageHead>
            <Problem of={sending} />
            <p role="status">{emailText(document.email)}</p>
            <InvoiceView
              of={document}
              paymentAction={(payment) => (
                <May call="removePayment">
                  <button type="button" class="plain" onClick={() => setRemoved(payment)}>
                    Remove
                  </button>
                </May>
              )}
            />
            {isCrediting ? <Credit of={document} close={closeCredit} /> : null}
            {isPaying && document.balance !== null ? (
              <Pay number={number} balance={document.balance} paid={loaded.reload} close={() => setPaying(false)} />
            ) : null}
            {removed === undefined ? null : (
              <Confirm
                title="Remove this payment?"
                verb="Remove"
                act={async () => {
                  await api('removePayment', { path: { number, payment: String(removed.id) } })
                  loaded.reload()
                }}
                close={() => setRemoved(undefined)}
              >
                <Facts
                  of={[
                    ['Amount', exactAud(removed.amount)],
                    ['Paid on', date(removed.paid_on)],
                    ['Reference', removed.reference],
                  ]}
                />
                <p>The invoice is due again. The audit log keeps what was removed.</p>
              </Confirm>
            )}
          </>
        )}
      </Ready>
    </>
  )
}

function emailText(email: Document['email']): string {
  if (email === null) return 'Not sent by e-mail.'
  const { state, recipient, attempts, sent_at: sentAt, last_error: error } = email
  if (sentAt !== null) return `Sent to ${recipient} on ${time(sentAt)}.`
  const why = error === null ? '' : ` Attempt ${attempts} failed: ${error}`
  return state === 'failed' ? `Could not be sent to ${recipient}.${why}` : `Waits to be sent to ${recipient}.${why}`
}

function Pay({
  number,
  balance: { state, amount_due },
  paid,
  close,
}: {
  number: string
  balance: Balance
  paid: () => void
  close: () => void
}) {
  const open = amount_due.replace('-', '')
  const today = sydneyDate(Date.now())
  const [day, setDay] = useState(today)
  const [typed, setTyped] = useState(open)
  const [reference, setReference] = useState('')
  const action = useAction()
  async function record(): Promise<void> {
    await api('recordPayment', { path: { number }, body: { paid_on: day, reference, amount: typed.trim() } })
    paid()
    close()
  }
  return (
    <Dialog title={`${state === 'refund_due' ? 'Refund' : 'Payment'} for ${number}`} close={close}>
      <Form class="stack" action={action} submit={record}>
        <p>
          {exactAud(open)} {state === 'refund_due' ? 'is to be paid back to the buyer.' : 'is due.'}
        </p>
        <Field label="Paid on (day in Sydney)">
          <input
            name="paid_on"
            type="date"
            required
            max={today}
            value={day}
            onInput={(event) => setDay(event.currentTarget.value)}
          />
        </Field>
        <Field label="Amount in A$, including GST">
          <input
            name="amount"
            {...amount}
            required
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </Field>
        <Field label="Reference, such as the number on the bank statement">
          <input
            name="reference"
            required
            maxLength={200}
            value={reference}
            onInput={(event) => setReference(event.currentTarget.value)}
          />
        </Field>
        <Problem of={action} />
        <div class="row">
          <button type="submit" class="primary" disabled={action.isRunning}>
            Record
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </Form>
    </Dialog>
  )
}

function Credit({ of: { workspace, period, total }, close }: { of: Document; close: () => void }) {
  const [extent, setExtent] = useState<'all' | 'amount'>()
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const [issued, setIssued] = useState<string>()
  const action = useAction()
  async function credit(): Promise<void> {
    const note = await api('creditInvoice', {
      body: { workspace, period, reason, ...(extent === 'all' ? { all: true } : { amount: typed.trim() }) },
    })
    setIssued(`${note.title} ${note.number ?? ''}: ${exactAud(note.total)}.`)
  }
  const choice = (value: 'all' | 'amount', title: string) => (
    <label class="inline">
      <input type="radio" name="extent" checked={extent === value} onChange={() => setExtent(value)} />
      {title}
    </label>
  )
  return (
    <Dialog title={`Credit ${workspace}, ${period}`} close={close}>
      <Form class="stack" action={action} submit={credit}>
        <fieldset class="stack tight">
          <legend>How much?</legend>
          {choice('all', `Everything that is left of the invoice (it was issued for ${exactAud(total)})`)}
          {choice('amount', 'An amount')}
        </fieldset>
        {extent === 'amount' ? (
          <Field label="Amount in A$, excluding GST">
            <input
              name="amount"
              {...amount}
              required
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </Field>
        ) : null}
        <Field label="Reason, printed on the note">
          <input
            name="reason"
            required
            maxLength={1000}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </Field>
        <Problem of={action} />
        <div role="status">{issued === undefined ? null : <div class="notice">{issued}</div>}</div>
        <div class="row">
          <button
            type="submit"
            class="primary"
            disabled={extent === undefined || reason.trim() === '' || action.isRunning || issued !== undefined}
          >
            Issue the note
          </button>
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      </Form>
    </Dialog>
  )
}
