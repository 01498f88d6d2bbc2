import type { Role } from './roles.ts'

/** The identity provider that people sign in to the consoles with, as weir.yaml describes it. */
export interface SignInProvider {
  readonly issuer: string
  readonly clientId: string
  /** A function, so that only the service looks it up. undefined: the client is public. */
  clientSecret(): string | undefined
  /** As people know it. */
  readonly name: string
  readonly scopes: readonly string[]
  /** Where people reach each console, without a slash at the end. undefined: no one signs in to that console. */
  readonly publicUrl: string | undefined
  readonly operatorUrl: string | undefined
  readonly groupsClaim: string
  readonly nameClaim: string
  readonly sessionMs: number
  readonly roles: readonly RoleRule[]
}

/** What a group may do. */
export interface RoleRule {
  readonly group: string
  readonly role: Role
  /** The name of the workspace, for a role in one. */
  readonly workspace: string | undefined
}
