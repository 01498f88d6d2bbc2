import { signal } from '@preact/signals'
import { hasSignedInAgain, isSignedOut, type Failure } from '../shared/client.ts'
import { session } from './api.ts'

/** Whether the operator is signed in. undefined: not known yet. */
export const isSignedIn = signal<boolean | undefined>(undefined)

/** Why the link in the address did not sign in. */
export const linkProblem = signal<string | undefined>(undefined)

export async function openSession(): Promise<void> {
  const secret = new URLSearchParams(location.hash.slice(1)).get('link')
  if (secret !== null) {
    // The secret works once. It must not stay in the history either.
    history.replaceState(null, '', location.pathname + location.search)
    await signIn({ link: secret }).catch((error: Failure) => (linkProblem.value = error.message))
    if (isSignedIn.value) return
  }
  try {
    await session('GET')
    isSignedIn.value = true
  } catch {
    isSignedIn.value = false
  }
  isSignedOut.value = false
}

export async function signIn(secret: { readonly token: string } | { readonly link: string }): Promise<void> {
  await session('POST', secret)
  isSignedIn.value = true
  hasSignedInAgain()
}

export async function signOut(): Promise<void> {
  await session('DELETE').catch(() => {})
  isSignedIn.value = false
}
