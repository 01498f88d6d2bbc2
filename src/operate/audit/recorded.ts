import type { AuditStore } from './audit-store.ts'
import type { Clock } from '../../shared/clock.ts'

/**
 * Every change by an operator or a member, in a console, through the API or by a command, is recorded before it is
 * made.
 */

/** An action as it is recorded. */
export interface Action {
  /** The id of the operator's operation. A command or a member's action has the id of the equivalent operation. */
  readonly action: string
  /** The object of the action. */
  readonly subject: string
  readonly body: object | undefined
  /** The current state of what it changes; undefined if there is nothing to show. */
  state(): Promise<object | undefined>
}

/** Who performs it, and in which request; a command has none. */
export interface Doer {
  readonly actor: string
  readonly requestId: string
}

/** Performs an action and records it. */
export type RecordAction = (action: Action, act: () => Promise<void>) => Promise<void>

/** Fields that must not be recorded. */
const SECRETS = new Set(['key', 'token', 'link', 'secret'])
const TEXT_MAX = 20_000

/**
 * Performs an action and records it, with the state before and after. If it cannot be recorded, it is not performed.
 */
export async function recorded<Result>(
  { audit, clock }: { readonly audit: AuditStore; readonly clock: Clock },
  { actor, requestId }: Doer,
  { action, subject, body, state }: Action,
  act: () => Promise<Result>,
): Promise<Result> {
  const snapshot = async (): Promise<string | null> => jsonOf(await attempt(state))
  const id = await audit.beginAudit({
    at: clock.now(),
    actor,
    requestId,
    action,
    subject,
    request: jsonOf(body),
    before: await snapshot(),
  })
  let result: Result
  try {
    result = await act()
  } catch (error) {
    await audit.endAudit(id, 'refused', null)
    throw error
  }
  await audit.endAudit(id, 'done', await snapshot())
  return result
}

/** An object that does not exist yet, or no longer, has no state. */
async function attempt(state: Action['state']): Promise<object | undefined> {
  try {
    return await state()
  } catch {
    return undefined
  }
}

function jsonOf(value: object | undefined): string | null {
  if (value === undefined) return null
  return JSON.stringify(value, (name, it: unknown) => (SECRETS.has(name) ? '…' : it)).slice(0, TEXT_MAX)
}
