import type { EndpointPlace } from './alert-store.ts'
import type { EventType } from './event-table.ts'
import type { NamedEvent } from './events.ts'

/** Where events are sent, as weir.yaml lists it. */
export interface AlertEndpoint extends EndpointPlace {
  readonly kind: 'webhook' | 'email'
  /** undefined: all. */
  readonly events: readonly EventType[] | undefined
  /** Only events of this workspace, by name; undefined: all events. */
  readonly workspace: string | undefined
}

export interface WebhookEndpoint extends AlertEndpoint {
  readonly kind: 'webhook'
  readonly allowsPrivate: boolean
  /** A function, so that only the service looks up the secret. */
  secret(): Buffer
}

export interface EmailEndpoint extends AlertEndpoint {
  readonly kind: 'email'
  readonly recipient: string
}

export interface AlertSettings {
  readonly endpoints: readonly (WebhookEndpoint | EmailEndpoint)[]
  /** Shares of a spend limit, in percent. */
  readonly spendThresholds: readonly number[]
}

/** The names of the endpoints that an event is sent to. */
export function subscribersOf(
  { type, workspace }: Pick<NamedEvent, 'type' | 'workspace'>,
  endpoints: readonly AlertEndpoint[],
): readonly string[] {
  return endpoints
    .filter((it) => type !== 'webhook.test' && (it.events ?? [type]).includes(type))
    .filter((it) => it.workspace === undefined || it.workspace === workspace)
    .map(({ name }) => name)
}
