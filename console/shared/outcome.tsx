import { State } from './parts.tsx'

/** How a request ended, with the status and the error for its caller. Rows of older versions have neither. */
export interface Ending {
  readonly outcome: string
  readonly http_status: number | null
  readonly error_code: string | null
}

export function OutcomeState({ of: { outcome, http_status, error_code } }: { of: Ending }) {
  if (outcome === 'completed') return <State is="good">completed</State>
  const error = [http_status, error_code].filter((it) => it !== null).join(' ')
  return (
    <>
      <State is="warn">{outcome.replaceAll('_', ' ')}</State>
      {error === '' ? null : (
        <>
          <br />
          <code class="small soft">{error}</code>
        </>
      )}
    </>
  )
}
