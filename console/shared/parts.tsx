import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isReachable, type Failure } from './client.ts'
import type { Loaded } from './data.ts'
import { ago, aud, audOf, exactAud, time } from './format.ts'
import { Icon } from './icon.tsx'
import { checkIcon, copyIcon, inboxIcon } from './icons.ts'

/** Small parts that every page uses. */

export function PageHead({
  title,
  about,
  children,
}: {
  title: string
  about?: ComponentChildren
  children?: ComponentChildren
}) {
  useEffect(() => {
    document.title = `${title} · Weir`
  }, [title])
  return (
    <div class="page-head">
      <div>
        <h1>{title}</h1>
        {about === undefined ? null : <p>{about}</p>}
      </div>
      {children === undefined ? null : <div class="row">{children}</div>}
    </div>
  )
}

/** Shows the data once it has loaded; before that, that it is loading or why that failed. */
export function Ready<Data>({
  of,
  shape = 'list',
  children,
}: {
  of: Loaded<Data> & { reload: () => void }
  /** What takes its place while it loads. */
  shape?: Shape
  children: (data: Data) => ComponentChildren
}) {
  if (of.state === 'loading') return <Loading shape={shape} />
  if (of.state === 'failed') return <Trouble failure={of.failure} retry={of.reload} />
  return (
    <>
      {of.failure === undefined ? null : <Trouble failure={of.failure} retry={of.reload} />}
      {children(of.data)}
    </>
  )
}

type Shape = keyof typeof bones

/** How many blocks of which kind stand where the content will. */
const bones = {
  list: { row: 6 },
  cards: { card: 6 },
  report: { figure: 4, chart: 2 },
}

/** The outline of what is to come, so that the page does not jump when it has loaded. */
export function Loading({ shape = 'list' }: { shape?: Shape }) {
  return (
    <div class="skeleton" role="status">
      <span class="visually-hidden">Loading …</span>
      {Object.entries(bones[shape]).map(([kind, number]) => (
        <div key={kind} class={`bones ${kind}s`} aria-hidden="true">
          {Array.from({ length: number }, (_, index) => (
            <div key={index} class="loading" />
          ))}
        </div>
      ))}
    </div>
  )
}

export function Trouble({ failure, retry }: { failure: Failure; retry: () => void }) {
  // It is shown above the page, once for everything on it.
  if (failure.code === 'unreachable') return null
  return (
    <div class="notice bad" role="alert">
      <strong>{failure.status === 403 ? 'You may not see this' : 'That did not work'}</strong>
      {failure.message}{' '}
      <button type="button" class="plain" onClick={retry}>
        Try again
      </button>
    </div>
  )
}

/** Shows when live data has stopped updating, unless that is shown above the page. */
export function Stale({ is }: { is: boolean }) {
  return (
    <div role="status">
      {is && isReachable.value ? (
        <div class="notice warn">
          <strong>These figures are out of date</strong>The connection is lost. It is tried again by itself.
        </div>
      ) : null}
    </div>
  )
}

/** A list without entries: what would be here, and what to do next. */
export function Empty({
  icon = inboxIcon,
  title,
  children,
}: {
  icon?: string
  title: string
  children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <Icon of={icon} />
      <strong>{title}</strong>
      {children}
    </div>
  )
}

export type Health = 'good' | 'warn' | 'bad' | 'idle'

/** A shape and a word; colour is never the only signal. */
export function State({ is, children }: { is: Health; children: ComponentChildren }) {
  return <span class={`state ${is}`}>{children}</span>
}

export function Figures({
  of,
}: {
  of: readonly (readonly [label: ComponentChildren, value: ComponentChildren, note?: string])[]
}) {
  return (
    <dl class="figures">
      {of.map(([label, value, note], index) => (
        <div key={index}>
          <dt>{label}</dt>
          <dd>
            {value} {note === undefined ? null : <small>{note}</small>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

export function Facts({
  of,
  areAmounts = false,
}: {
  of: readonly (readonly [label: string, value: ComponentChildren])[]
  areAmounts?: boolean
}) {
  return (
    <dl class={areAmounts ? 'facts amounts' : 'facts'}>
      {of.map(([label, value]) => (
        <>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  )
}

/** AUD, with the exact amount on hover. */
export function Amount({ of: amount, column }: { of: string; column?: readonly string[] }) {
  return (
    <span class="unbroken" title={exactAud(amount)}>
      {aud(amount, column)}
    </span>
  )
}

/** A date and time, in one line. */
export function Moment({ at }: { at: string }) {
  return (
    <time dateTime={at} class="unbroken">
      {time(at)}
    </time>
  )
}

/** How long ago, with the time on hover. */
export function Ago({ at }: { at: string | null }) {
  return (
    <span class="unbroken" title={at === null ? undefined : time(at)}>
      {ago(at)}
    </span>
  )
}

export interface Column<Row> {
  readonly title: string
  readonly isNumber?: boolean
  /** Stays in view when the table is wider than the screen. */
  readonly isAction?: boolean
  readonly cell: (row: Row, rows: readonly Row[]) => ComponentChildren
}

const costs = <Row,>(costOf: (row: Row) => string): Column<Row> => ({
  title: 'Cost',
  isNumber: true,
  cell: (row, rows) => <Amount of={costOf(row)} column={rows.map(costOf)} />,
})

export const costColumn = costs(({ amount }: { readonly amount: string }) => amount)
export const requestCostColumn = costs(({ amount_pico_aud: pico }: { readonly amount_pico_aud: string }) => audOf(pico))

/** The first column names the row. */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
}: {
  caption: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
}) {
  // These would not fit a phone: there, each row is a block.
  const flows = columns.length > 2 || columns.some(({ isAction }) => isAction)
  return (
    <div class={flows ? 'table-wrap flows' : 'table-wrap'} role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber, isAction }) => (
              <th key={title} scope="col" class={isNumber ? 'number' : isAction ? 'action' : ''}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, isNumber, isAction, cell }, index) =>
                index === 0 ? (
                  <th key={title} scope="row">
                    {cell(row, rows)}
                  </th>
                ) : (
                  <td key={title} data-title={title} class={isNumber ? 'number' : isAction ? 'action' : ''}>
                    {cell(row, rows)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A choice of one, as buttons side by side. */
export function Segments<Value extends string>({
  label,
  value,
  options,
  choose,
}: {
  label: string
  value: Value
  options: readonly (readonly [value: Value, title: string])[]
  choose: (value: Value) => void
}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([option, title]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => choose(option)}>
          {title}
        </button>
      ))}
    </div>
  )
}

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code-block">
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
    </div>
  )
}

export function Copy({ text, title = 'Copy', hasCopied }: { text: string; title?: string; hasCopied?: () => void }) {
  const [isCopied, setCopied] = useState(false)
  async function copy(): Promise<void> {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    hasCopied?.()
    setTimeout(() => setCopied(false), 1500)
  }
  return (
    <button type="button" onClick={() => void copy()} aria-live="polite">
      <Icon of={isCopied ? checkIcon : copyIcon} />
      {isCopied ? 'Copied' : title}
    </button>
  )
}

/** A question in front of the page. Escape closes it, unless `isKept`: then only what is in it does. */
export function Dialog({
  title,
  kind,
  isKept = false,
  close,
  children,
}: {
  title: string
  kind?: 'viewer'
  isKept?: boolean
  close: () => void
  children: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog
      ref={dialog}
      class={kind}
      // Browsers without closedby ask with a cancel event; those with it close at the second Escape whatever the event says.
      closedby={isKept ? 'none' : 'closerequest'}
      onCancel={(event) => isKept && event.preventDefault()}
      onClose={close}
      aria-label={title}
    >
      <div class="stack">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/** A dialog at the side of the page. */
export function Sheet({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const sheet = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    sheet.current?.showModal()
  }, [])
  return (
    <dialog ref={sheet} class="sheet" onClose={close} aria-label={title}>
      <SheetHead title={title} close={() => sheet.current?.close()} />
      <div class="stack">{children}</div>
    </dialog>
  )
}

export function SheetHead({ title, close }: { title: string; close: () => void }) {
  return (
    <div class="sheet-head">
      <h2>{title}</h2>
      <button type="button" onClick={close}>
        Close
      </button>
    </div>
  )
}

/** A share of a limit. */
export function Meter({ value, max, label }: { value: number; max: number; label: string }) {
  const share = max > 0 ? Math.min(1, value / max) : 0
  return (
    <div
      class={`meter${max > 0 && value / max >= 0.9 ? ' over' : ''}`}
      role="meter"
      aria-label={label}
      aria-valuenow={value}
      aria-valuemin={0}
      aria-valuemax={Math.max(max, value)}
    >
      <span style={{ width: `${share * 100}%` }} />
    </div>
  )
}
