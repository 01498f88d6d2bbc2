import { operations, type Operations } from '../generated/operator-api.ts'
import { client, send } from '../shared/client.ts'

/** The operator's API, with the session of this browser. */
export const api = client<Operations>(operations)

export type Answer<Id extends keyof Operations> = Operations[Id]['answer']
export type Workspace = Answer<'listWorkspaces'>['data'][number]
export type Key = Answer<'listKeys'>['data'][number]
export type Lane = Answer<'listQueues'>['lanes'][number]
export type Sample = Answer<'listQueues'>

export interface OperatorSession {
  readonly expires_at: string
  /** null after the token or a link. */
  readonly person: string | null
  readonly roles: readonly string[]
}

/** Signing in is not part of the documented API. */
export async function session(method: 'GET' | 'POST' | 'DELETE', body?: object): Promise<OperatorSession> {
  const response = await send('/console/api/session', {
    method,
    ...(body ? { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } } : {}),
  })
  return (await response.json()) as OperatorSession
}
