import { createHash } from 'node:crypto'
import type { EventData, EventType } from './event-table.ts'

/** Something that happened. The id depends only on what happened, so several processes that notice it write one event. */
export interface AlertEvent {
  readonly id: string
  readonly type: EventType
  readonly occurredAt: number
  /** Whose it is; null: of the whole service. */
  readonly workspaceId: string | null
  readonly keyId: string | null
  /** What its state is of, such as an engine; null: it has none. */
  readonly subject: string | null
  /** JSON, without what is known of the workspace and the key. */
  readonly data: string
}

interface Happening<Type extends EventType> {
  /** Together with the type, they make the event unique. */
  readonly unique: readonly (string | number)[]
  readonly at: number
  readonly workspaceId?: string
  readonly keyId?: string
  readonly subject?: string
  readonly data: EventData<Type>
}

export function alertEvent<Type extends EventType>(type: Type, happening: Happening<Type>): AlertEvent {
  const { unique, at, workspaceId = null, keyId = null, subject = null, data } = happening
  const id = hashId('evt', type, ...unique)
  return { id, type, occurredAt: at, workspaceId, keyId, subject, data: JSON.stringify(data) }
}

/** The id of the delivery of an event to an endpoint. */
export const deliveryId = (eventId: string, endpoint: string): string => hashId('dlv', eventId, endpoint)

function hashId(kind: string, ...parts: readonly (string | number)[]): string {
  return `${kind}_${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)}`
}

/** An event with what its workspace and its key are called. */
export interface NamedEvent extends AlertEvent {
  readonly workspace: string | null
  readonly keyName: string | null
  readonly keyEnding: string | null
}

/** What is sent. Written once for each event, so that every attempt sends the same bytes. */
export function bodyOf({ type, occurredAt, workspace, keyId, keyName, keyEnding, data }: NamedEvent): string {
  return JSON.stringify({
    type,
    timestamp: new Date(occurredAt).toISOString(),
    data: {
      ...(workspace === null ? {} : { workspace }),
      ...(keyId === null ? {} : { key_id: keyId, key_name: keyName, key_ending: keyEnding }),
      ...(JSON.parse(data) as object),
    },
  })
}
