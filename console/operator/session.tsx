import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { operations, type Operations } from '../generated/operator-api.ts'
import { hasSignedInAgain, isSignedOut, mayCall, type Failure } from '../shared/client.ts'
import { session, type OperatorSession } from './api.ts'

/** Who is signed in. undefined: not known yet. */
export const current = signal<OperatorSession | null | undefined>(undefined)

/** Why the link in the address did not sign in. */
export const linkProblem = signal<string | undefined>(undefined)

/** Whether the person who is signed in may call the operation. */
export function may(id: keyof Operations): boolean {
  return mayCall<Operations>(operations, id, current.value?.roles ?? [])
}

/** Something that only people who may call the operation see. */
export function May({ call, children }: { call: keyof Operations; children: ComponentChildren }) {
  return may(call) ? <>{children}</> : null
}

export async function openSession(): Promise<void> {
  // The page that shows why a sign-in failed has no address of its own.
  if (location.pathname.startsWith('/console/api/')) history.replaceState(null, '', '/console')
  const secret = new URLSearchParams(location.hash.slice(1)).get('link')
  if (secret !== null) {
    // The secret works once. It must not stay in the history either.
    history.replaceState(null, '', location.pathname + location.search)
    await signIn({ link: secret }).catch((error: Failure) => (linkProblem.value = error.message))
    if (current.value) return
  }
  try {
    current.value = await session('GET')
  } catch {
    current.value = null
  }
  isSignedOut.value = false
}

export async function signIn(secret: { readonly token: string } | { readonly link: string }): Promise<void> {
  current.value = await session('POST', secret)
  hasSignedInAgain()
}

/** Finds out whether the person has signed in again in another tab. */
export async function findSession(): Promise<void> {
  current.value = await session('GET')
  hasSignedInAgain()
}

export async function signOut(): Promise<void> {
  await session('DELETE').catch(() => {})
  current.value = null
}
