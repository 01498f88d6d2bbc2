import { useState } from 'preact/hooks'
import { Confirm } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { count, date, exactAud, exactPicoAud, sydneyDate } from '../../shared/format.ts'
import { InvoiceView, invoiceStates } from '../../shared/invoice.tsx'
import { Dialog, Empty, Facts, PageHead, Ready, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { May } from '../session.tsx'

/** The drafts of a month: reviewed one by one or together, and issued together. */

type Draft = Answer<'listDrafts'>['data'][number]
type Result = Answer<'issueDrafts'>['data'][number]

/** Small enough to show progress, and less than the service takes in one request. */
const DRAFTS_AT_ONCE = 20

export function DraftsPage() {
  const [period, setPeriod] = useState(lastMonth)
  const drafts = useData((signal) => allDrafts(period, signal), [period])
  return (
    <>
      <PageHead
        title="Drafts of a month"
        about="What each workspace would be invoiced that has no invoice for the month yet."
      />
      <div class="row end">
        <label>
          Month
          <input
            type="month"
            required
            value={period}
            onInput={({ currentTarget: { value } }) => value !== '' && setPeriod(value)}
          />
        </label>
      </div>
      <Ready of={drafts}>
        {(found) => <Review key={period} period={period} drafts={found} reload={drafts.reload} />}
      </Ready>
    </>
  )
}

export function lastMonth(): string {
  const [year = 2026, month = 1] = sydneyDate(Date.now()).split('-').map(Number)
  return month === 1 ? `${year - 1}-12` : `${year}-${String(month - 1).padStart(2, '0')}`
}

async function allDrafts(period: string, signal: AbortSignal): Promise<readonly Draft[]> {
  const drafts: Draft[] = []
  let after: string | null = null
  do {
    const page: Answer<'listDrafts'> = await api('listDrafts', {
      query: { period, limit: 100, ...(after === null ? {} : { after }) },
      signal,
    })
    drafts.push(...page.data)
    after = page.next
  } while (after !== null)
  return drafts
}

/** Cents, because sums of decimals in floating point are not exact. */
const centsOf = (total: string): bigint => BigInt(total.replace('.', ''))
const sumOf = (totals: readonly string[]): string =>
  exactPicoAud(String(totals.reduce((sum, total) => sum + centsOf(total), 0n) * 10_000_000_000n))

const invoices = (many: number): string => `${count(many)} ${many === 1 ? 'invoice' : 'invoices'}`

function Review({ period, drafts, reload }: { period: string; drafts: readonly Draft[]; reload: () => void }) {
  const possible = drafts.filter(({ obstacle }) => obstacle === null)
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set())
  const [shown, setShown] = useState<Draft>()
  const [isConfirming, setConfirming] = useState(false)
  const [progress, setProgress] = useState<number>()
  const [results, setResults] = useState<readonly Result[]>()
  const chosen = possible.filter(({ workspace }) => !left.has(workspace))

  function choose(names: readonly string[], isChosen: boolean): void {
    const changed = new Set(left)
    for (const name of names) {
      if (isChosen) changed.delete(name)
      else changed.add(name)
    }
    setLeft(changed)
  }

  async function issue(): Promise<void> {
    const done: Result[] = []
    try {
      for (let from = 0; from < chosen.length; from += DRAFTS_AT_ONCE) {
        setProgress(from)
        const next = chosen.slice(from, from + DRAFTS_AT_ONCE)
        const body = { period, drafts: next.map(({ workspace, preview_id }) => ({ workspace, preview_id })) }
        done.push(...(await api('issueDrafts', { body })).data)
      }
    } finally {
      // What was issued before a failure stays issued.
      setProgress(undefined)
      setResults(done)
      reload()
    }
  }

  return (
    <>
      <div role="status">{results === undefined ? null : <Results of={results} />}</div>
      {drafts.length === 0 ? (
        <Empty title={`No workspace has a draft for ${period}`}>
          Every workspace that used something in this month has its invoice.
        </Empty>
      ) : (
        <>
          <May call="issueDrafts">
            <div class="row">
              <button
                type="button"
                class="primary"
                disabled={chosen.length === 0 || progress !== undefined}
                onClick={() => setConfirming(true)}
              >
                Issue {invoices(chosen.length)}, {sumOf(chosen.map(({ total }) => total))}
              </button>
              <button
                type="button"
                onClick={() =>
                  choose(
                    possible.map(({ workspace }) => workspace),
                    chosen.length < possible.length,
                  )
                }
              >
                {chosen.length < possible.length ? 'Choose all' : 'Choose none'}
              </button>
            </div>
          </May>
          <Table
            caption="Drafts"
            rows={drafts}
            keyOf={({ workspace }) => workspace}
            columns={[
              {
                title: 'Workspace',
                cell: ({ workspace, obstacle }) => (
                  <label class="inline">
                    <input
                      type="checkbox"
                      checked={obstacle === null && !left.has(workspace)}
                      disabled={obstacle !== null || progress !== undefined}
                      onChange={(event) => choose([workspace], event.currentTarget.checked)}
                    />
                    {workspace}
                  </label>
                ),
              },
              { title: 'Total incl. GST', isNumber: true, cell: ({ total }) => exactAud(total) },
              { title: 'Check', cell: (draft) => <Check of={draft} /> },
              { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
              { title: 'Subtotal', isNumber: true, cell: ({ subtotal }) => exactAud(subtotal) },
              { title: 'GST', isNumber: true, cell: ({ gst }) => exactAud(gst) },
              { title: 'Previous invoice', isNumber: true, cell: ({ previous }) => <Previous of={previous} /> },
              {
                title: 'Draft',
                isAction: true,
                cell: (draft) => (
                  <button type="button" class="plain" onClick={() => setShown(draft)}>
                    View
                  </button>
                ),
              },
            ]}
          />
          <section class="panel" aria-label="Totals of all drafts">
            <Facts
              areAmounts
              of={[
                ['Subtotal, excl. GST', sumOf(drafts.map(({ subtotal }) => subtotal))],
                ['GST', sumOf(drafts.map(({ gst }) => gst))],
                ['Total, incl. GST', <strong key="total">{sumOf(drafts.map(({ total }) => total))}</strong>],
              ]}
            />
          </section>
        </>
      )}
      {shown === undefined ? null : <DraftView period={period} draft={shown} close={() => setShown(undefined)} />}
      {isConfirming ? (
        <Confirm
          title={`Issue ${invoices(chosen.length)}?`}
          verb="Issue"
          act={issue}
          close={() => setConfirming(false)}
        >
          <Facts
            of={[
              ['Month', period],
              ['Invoices', count(chosen.length)],
              ['Total, incl. GST', <strong key="total">{sumOf(chosen.map(({ total }) => total))}</strong>],
            ]}
          />
          <p>
            Each invoice is issued exactly as listed; a draft that has changed since is refused. An issued invoice is
            never changed. It can only be credited.
          </p>
          {progress === undefined ? null : (
            <p role="status">
              {count(progress)} of {invoices(chosen.length)} done …
            </p>
          )}
        </Confirm>
      ) : null}
    </>
  )
}

function Check({ of: { obstacle } }: { of: Draft }) {
  if (obstacle === null) return <State is="good">Ready</State>
  return (
    <details>
      <summary>
        <State is="bad">Cannot be issued</State>
      </summary>
      <p class="small">{obstacle}</p>
    </details>
  )
}

function Previous({ of: previous }: { of: Draft['previous'] }) {
  if (previous === null) return <>–</>
  const state = previous.state === null ? '' : `, ${invoiceStates[previous.state][0].toLowerCase()}`
  return (
    <>
      <a href={`/console/invoices/${previous.number}`}>{exactAud(previous.total)}</a>{' '}
      <small class="soft">
        {previous.period}
        {state}
      </small>
    </>
  )
}

function DraftView({ period, draft: { workspace }, close }: { period: string; draft: Draft; close: () => void }) {
  const loaded = useData((signal) => api('previewInvoice', { body: { workspace, period }, signal }), [workspace])
  return (
    <Dialog title={`Draft of ${workspace}, ${period}`} close={close}>
      <Ready of={loaded}>
        {(document) => (
          <>
            <p>
              {date(document.period_from)} to {date(document.period_to)}
            </p>
            <InvoiceView of={document} />
          </>
        )}
      </Ready>
      <button type="button" onClick={close}>
        Close
      </button>
    </Dialog>
  )
}

function Results({ of: results }: { of: readonly Result[] }) {
  const issued = results.filter(({ number }) => number !== null)
  const refused = results.filter(({ number }) => number === null)
  return (
    <div class={refused.length === 0 ? 'notice' : 'notice warn'}>
      <strong>
        {invoices(issued.length)} issued, {sumOf(issued.map(({ total }) => total ?? '0.00'))}
        {refused.length === 0 ? '' : `; ${count(refused.length)} refused`}
      </strong>
      <ul>
        {[...refused, ...issued].map(({ workspace, number, total, error }) => (
          <li key={workspace}>
            {workspace}:{' '}
            {number === null ? (
              error?.message
            ) : (
              <>
                <a href={`/console/invoices/${number}`}>{number}</a>, {exactAud(total ?? '')}
              </>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}
