import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Failure } from './client.ts'
import { Mark } from './mark.tsx'

/**
 * The page in front of a console. What is typed is sent to the service and not stored here. After a session has ended,
 * it covers the open page, which keeps what was typed there.
 */
export function SignIn({
  title,
  about,
  label,
  hasEnded,
  linkProblem,
  enter,
  find,
}: {
  title: string
  about: string
  label: string
  hasEnded: boolean
  /** Why the link in the address did not sign in. */
  linkProblem: string | undefined
  enter: (secret: string) => Promise<void>
  /** Finds out whether the person has signed in meanwhile, in another tab. */
  find: () => Promise<void>
}) {
  const { provider, problem: providerProblem } = document.getElementById('app')?.dataset ?? {}
  const [problem, setProblem] = useState(linkProblem)
  const [isBusy, setBusy] = useState(false)

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const input = form.elements.namedItem('secret') as HTMLInputElement
    setBusy(true)
    setProblem(undefined)
    try {
      await enter(input.value.trim())
    } catch (error) {
      setProblem((error as Failure).message)
      input.select()
    } finally {
      setBusy(false)
    }
  }

  useEffect(() => {
    if (!hasEnded || provider === undefined) return undefined
    const look = (): void => {
      if (document.visibilityState === 'visible') void find().catch(() => {})
    }
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])

  /** In another tab if the page is open, because it keeps what was typed. */
  function leave(): void {
    const query = new URLSearchParams({ return: location.pathname + location.search })
    const address = `/console/api/sign-in?${query.toString()}`
    if (hasEnded) window.open(address, '_blank', 'noopener')
    else location.assign(address)
  }

  const form = (
    <form class="panel stack" onSubmit={(event) => void submit(event)}>
      <Mark />
      <h1>{title}</h1>
      {hasEnded ? <p class="soft">Your session has ended. Sign in again to go on.</p> : null}
      {provider === undefined ? null : (
        <>
          {hasEnded || providerProblem === undefined ? null : (
            <div class="notice bad" role="alert">
              {providerProblem}
            </div>
          )}
          <button type="button" class="primary" onClick={leave}>
            Sign in with {provider}
          </button>
          <p class="or">or</p>
        </>
      )}
      {hasEnded ? null : <p class="soft">{about}</p>}
      <label>
        {label}
        <input
          name="secret"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          autofocus={provider === undefined}
          aria-invalid={problem !== undefined}
          aria-describedby="problem"
        />
      </label>
      <div id="problem" role="alert">
        {problem === undefined ? null : <div class="notice bad">{problem}</div>}
      </div>
      <button class={provider === undefined ? 'primary' : ''} type="submit" disabled={isBusy}>
        {isBusy
          ? 'Signing in …'
          : provider === undefined
            ? 'Sign in'
            : `Sign in with the ${label.replace('Operator', 'operator')}`}
      </button>
    </form>
  )
  return hasEnded ? (
    <InFront>{form}</InFront>
  ) : (
    <main class="sign-in" id="content">
      {form}
    </main>
  )
}

/** Nothing behind it can be reached or seen, and Escape does not close it. */
function InFront({ children }: { children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog
      ref={dialog}
      class="sign-in-again"
      aria-label="Sign in again"
      onCancel={(event) => event.preventDefault()}
      onClose={() => dialog.current?.showModal()}
    >
      {children}
    </dialog>
  )
}
