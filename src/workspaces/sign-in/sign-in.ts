import { hash } from 'node:crypto'
import { isOperatorRole } from '../../shared/roles.ts'
import type { SignInProvider } from '../../shared/sign-in-provider.ts'
import type { HeldRole, Person } from '../sessions/session-store.ts'

/** Signing in through an identity provider: who it is, and what their groups may do. */

export interface IdentityProvider {
  /** Where to send the browser, and what to check when it returns. Rejects with a `SignInFailed`. */
  begin(redirectUrl: string): Promise<{ readonly url: string; readonly checks: SignInChecks }>
  /** Who signed in. `returnedTo` is the address with the provider's answer. Rejects with a `SignInFailed`. */
  finish(returnedTo: URL, checks: SignInChecks): Promise<Claims>
}

export interface SignIn {
  readonly settings: SignInProvider
  readonly provider: IdentityProvider
  /** For the log. */
  failed(failure: SignInFailed): void
}

/** What only the browser that began the sign-in knows. */
export interface SignInChecks {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** What the provider states about a person. */
export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string }

export class SignInFailed extends Error {
  /** unreachable: the provider does not answer. refused: it, or a check here, did not accept the sign-in. */
  readonly kind: 'unreachable' | 'refused' | 'forbidden'

  constructor(kind: SignInFailed['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

const TEXT_MAX = 200

export function personIn(claims: Claims, { issuer, nameClaim }: SignInProvider): Person {
  const { sub: subject } = claims
  return {
    id: `person_${hash('sha256', JSON.stringify([issuer, subject])).slice(0, 16)}`,
    issuer,
    subject: textOf(subject) ?? '',
    name: textOf(claims[nameClaim]) ?? textOf(claims['preferred_username']),
    email: textOf(claims['email']),
  }
}

/** On one line, and without what separates a name from the rest of an audit entry. */
function textOf(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const text = value
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}()]/gu, ' ')
    .trim()
    .slice(0, TEXT_MAX)
  return text === '' ? null : text
}

/** The roles in a console that the groups of a person have. Throws if there are none, with what is missing. */
export function rolesIn(
  claims: Claims,
  { name, groupsClaim, roles: rules }: SignInProvider,
  console: 'operator' | 'workspace',
  workspaceId: (name: string) => string | undefined,
): readonly HeldRole[] {
  const claimed = claims[groupsClaim]
  const groups = new Set([claimed].flat().filter((it) => typeof it === 'string'))
  const ofConsole = rules.filter(({ role }) => isOperatorRole(role) === (console === 'operator'))
  const own = ofConsole.filter(({ group }) => groups.has(group))
  const roles = own.flatMap(({ role, workspace }): readonly HeldRole[] => {
    if (workspace === undefined) return [{ role }]
    const id = workspaceId(workspace)
    return id === undefined ? [] : [{ role, workspaceId: id }]
  })
  if (roles.length > 0) return roles
  throw new SignInFailed('forbidden', whyNone())

  function whyNone(): string {
    if (own.length > 0) {
      const names = [...new Set(own.map(({ workspace }) => `"${workspace}"`))].join(', ')
      return `Your groups belong to the workspace ${names}, which does not exist. Ask the operator to create it.`
    }
    if (claimed === undefined) {
      return `${name} did not say which groups you are in: there is no claim "${groupsClaim}". Ask the operator to have it sent, or to set sign_in.oidc.groups_claim.`
    }
    const needed = [...new Set(ofConsole.map(({ group }) => `"${group}"`))].join(', ')
    return `You are signed in to ${name}, but not in a group that may use this console. It needs one of ${needed}.`
  }
}
