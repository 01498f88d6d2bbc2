import { useEffect, useState } from 'preact/hooks'
import { brief, count, milliseconds, picoAud } from '../../shared/format.ts'
import { requestPath } from '../../shared/request-path.ts'
import { api, type Answer } from '../api.ts'

/** The usage and cost of a request according to the ledger: the same figures that are billed. */

type Row = Answer<'usageRequestId'>

export interface Measured {
  readonly requestId: string
  /** As this browser saw it. */
  readonly firstTokenMs?: number
  readonly durationMs: number
  /** It reached no model, so the ledger has nothing about it. */
  readonly isRefused?: true
  /** What the ledger has, once it is known. */
  readonly row?: Row
}

export function Outcome({ of, found: keep }: { of: Measured; found?: (row: Row) => void }) {
  const [row, setRow] = useState(of.row)
  useEffect(() => {
    if (of.row || of.isRefused) return undefined
    // A request that was stopped is settled a moment after the browser has disconnected.
    let isGone = false
    async function poll(attempts: number): Promise<void> {
      const found = await api('usageRequestId', { path: { request_id: of.requestId } }).catch(() => undefined)
      if (isGone) return
      if (found) {
        setRow(found)
        keep?.(found)
      } else if (attempts > 0) setTimeout(() => void poll(attempts - 1), 400)
    }
    void poll(10)
    return () => void (isGone = true)
  }, [of.requestId])
  const figures = [
    ...(row ? ledgerFigures(row, of) : []),
    ...(row ? [] : [['Time', milliseconds(of.durationMs)] as const]),
  ]
  return (
    <dl class="outcome" aria-label="What the request took">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
      <div>
        <dt>Request</dt>
        <dd>
          <a href={requestPath(of.requestId)}>
            <code>{of.requestId.slice(0, 12)}…</code>
          </a>
        </dd>
      </div>
    </dl>
  )
}

function ledgerFigures(row: Row, { firstTokenMs, durationMs }: Measured): readonly (readonly [string, string])[] {
  const generating = durationMs - (firstTokenMs ?? durationMs)
  const speed = row.output_tokens > 1 && generating > 0 ? ((row.output_tokens - 1) / generating) * 1000 : undefined
  return [
    ['Cost', picoAud(row.amount_pico_aud)],
    ['Queue wait', milliseconds(row.queue_wait_ms)],
    ...(firstTokenMs === undefined ? [] : [['First token', milliseconds(firstTokenMs)] as const]),
    ...(speed === undefined
      ? []
      : [['Speed', `${speed < 10 ? speed.toFixed(1) : count(Math.round(speed))} tokens/s`] as const]),
    ...(row.input_tokens > 0 ? [['Input', `${brief(row.input_tokens)} tokens`] as const] : []),
    ...(row.cached_input_tokens > 0 ? [['Cached', `${brief(row.cached_input_tokens)} tokens`] as const] : []),
    ...(row.output_tokens > 0 ? [['Output', `${brief(row.output_tokens)} tokens`] as const] : []),
    ...(row.images > 0 ? [['Images', count(row.images)] as const] : []),
    ...(row.audio_ms > 0 ? [['Audio', milliseconds(row.audio_ms)] as const] : []),
    ['Time', milliseconds(durationMs)],
    ...(row.outcome === 'completed' ? [] : [['Outcome', failureOf(row)] as const]),
  ]
}

function failureOf({ outcome, error_code }: Row): string {
  const words = outcome.replaceAll('_', ' ')
  return error_code === null ? words : `${words}: ${error_code}`
}
