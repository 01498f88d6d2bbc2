import type { AuditStore } from '../ports/audit.ts'
import type { Clock } from '../ports/clock.ts'

/** Every change by an operator or a member, in a console, through the API or by a command, is on record before it is made. */

/** An action as it is recorded. */
export interface Action {
  /** The id of the operator's operation. A command, or a member, has that of the operation that does the same. */
  readonly action: string
  /** What it is done to. */
  readonly subject: string
  readonly body: object | undefined
  /** What it changes, as it is at the moment; undefined if there is nothing to show. */
  state(): Promise<object | undefined>
}

/** Who does it, and by which request; a command has none. */
export interface Doer {
  readonly actor: string
  readonly requestId: string
}

/** Does an action and puts it on record. */
export type RecordAction = (action: Action, act: () => Promise<void>) => Promise<void>

/** Fields that must not be on record. */
const SECRETS = new Set(['key', 'token', 'link', 'secret'])
const TEXT_MAX = 20_000

/** Does something and records it, with what it changed before and after. If it cannot be recorded, it is not done. */
export async function recorded<Result>(
  { audit, clock }: { readonly audit: AuditStore; readonly clock: Clock },
  { actor, requestId }: Doer,
  { action, subject, body, state }: Action,
  act: () => Promise<Result>,
): Promise<Result> {
  const look = async (): Promise<string | null> => jsonOf(await attempt(state))
  const id = await audit.beginAudit({
    at: clock.now(),
    actor,
    requestId,
    action,
    subject,
    request: jsonOf(body),
    before: await look(),
  })
  let result: Result
  try {
    result = await act()
  } catch (error) {
    await audit.endAudit(id, 'refused', null)
    throw error
  }
  await audit.endAudit(id, 'done', await look())
  return result
}

/** What does not exist yet, or no longer, has no state. */
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
