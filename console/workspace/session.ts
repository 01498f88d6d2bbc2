import { signal } from '@preact/signals'
import { operations, type Operations } from '../generated/console-api.ts'
import { hasSignedInAgain, isSignedOut, mayCall, type Failure } from '../shared/client.ts'
import { api, type Model, type Session } from './api.ts'

/** Who is signed in. undefined: not known yet. */
export const session = signal<Session | null | undefined>(undefined)

/** Whether the person who is signed in may call the operation. */
export function may(id: keyof Operations): boolean {
  return mayCall<Operations>(operations, id, session.value ? [session.value.role] : [])
}

/** The models that are public; undefined if the operator shows them to members only. */
export const publicModels = signal<readonly Model[] | undefined>(undefined)

/** Why the link in the address did not sign in. */
export const linkProblem = signal<string | undefined>(undefined)

/** Signs in with the secret in the address, if there is one, or finds out who is signed in. */
export async function openSession(): Promise<void> {
  // The page that shows why a sign-in failed has no address of its own.
  if (location.pathname.startsWith('/console/api/')) history.replaceState(null, '', '/console')
  const secret = new URLSearchParams(location.hash.slice(1)).get('link')
  if (secret !== null) {
    // The secret works once. It must not stay in the history either.
    history.replaceState(null, '', location.pathname + location.search)
    await signIn({ link: secret }).catch((error: Failure) => (linkProblem.value = error.message))
    if (session.value) return
  }
  try {
    session.value = await api('getSession')
  } catch {
    publicModels.value = (await api('publicModels').catch(() => undefined))?.data
    session.value = null
  }
  isSignedOut.value = false
}

export async function signIn(secret: { readonly key: string } | { readonly link: string }): Promise<void> {
  session.value = await api('signIn', { body: secret })
  hasSignedInAgain()
}

/** Finds out whether the person has signed in again in another tab. */
export async function findSession(): Promise<void> {
  session.value = await api('getSession')
  hasSignedInAgain()
}

export async function moveTo(workspace: string): Promise<void> {
  session.value = await api('moveSession', { body: { workspace } })
}

export async function signOut(): Promise<void> {
  await api('signOut').catch(() => {})
  session.value = null
}
