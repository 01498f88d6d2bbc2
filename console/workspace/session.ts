import { signal } from '@preact/signals'
import { hasSignedInAgain, isSignedOut, type Failure } from '../shared/client.ts'
import { api, type Model, type Session } from './api.ts'

/** Who is signed in. undefined: not known yet. */
export const session = signal<Session | null | undefined>(undefined)

/** The models that are public; undefined if the operator shows them to members only. */
export const publicModels = signal<readonly Model[] | undefined>(undefined)

/** Why the link in the address did not sign in. */
export const linkProblem = signal<string | undefined>(undefined)

/** Signs in with the secret in the address, if there is one, or finds out who is signed in. */
export async function openSession(): Promise<void> {
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

export async function signOut(): Promise<void> {
  await api('signOut').catch(() => {})
  session.value = null
}
