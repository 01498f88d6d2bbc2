import { State } from './parts.tsx'

/** How a request ended, with the status and the error for its caller. Rows of older versions have neither. */
export interface Ending {
  readonly outcome: string
  readonly http_status: number | null
  readonly error_code: string | null
}

export function OutcomeState({ of: { outcome, http_status, error_code } }: { of: Ending }) {
  if (outcome === 'completed') return <State is="good">completed</State>
  return (
    <>
      <State is="warn">{outcome.replaceAll('_', ' ')}</State>
      {http_status === null && error_code === null ? null : (
        <div class="small soft">
          {http_status} {error_code === null ? null : <ErrorLink code={error_code} />}
        </div>
      )}
    </>
  )
}

/** An error code, with its cause and its remedy a click away. */
export function ErrorLink({ code }: { code: string }) {
  return (
    <a href={`/docs#error-${code}`}>
      <code>{code}</code>
    </a>
  )
}
