import type { Claimed, DeliveryOutcome } from '../delivery/sender.ts'
import type { EventType } from './event-table.ts'
import type { AlertEvent, NamedEvent } from './events.ts'

/** Where events are delivered: an address for webhooks, or of a mailbox. */
export interface EndpointPlace {
  /** The name of a webhook, or `mailto:` and an address. */
  readonly name: string
  readonly url: string
}

/** An event on its way to one endpoint. */
export interface EventDelivery {
  readonly id: string
  readonly eventId: string
  readonly type: EventType
  readonly endpoint: string
  readonly state: DeliveryOutcome['state']
  readonly attempts: number
  readonly createdAt: number
  readonly nextAttemptAt: number
  readonly sentAt: number | null
  readonly lastError: string | null
  readonly body: string
}

export interface ClaimedDelivery extends Claimed {
  readonly id: string
  readonly eventId: string
  readonly body: string
}

export interface DeliveryQuery {
  readonly state?: DeliveryOutcome['state'] | undefined
  readonly type?: EventType | undefined
  readonly endpoint?: string | undefined
  /** The last delivery of the page before. */
  readonly before?: Pick<EventDelivery, 'createdAt' | 'id'> | undefined
  readonly limit: number
}

/** An event, with what is sent and the names of the endpoints that it is sent to. */
export interface DispatchedEvent {
  readonly id: string
  readonly body: string
  readonly endpoints: readonly string[]
}

/**
 * Events and their deliveries. An event whose cause is a change in the database is added in the same transaction
 * (`addEvent` in queries/alerts.ts), whatever is configured. Later it is dispatched: it gets a delivery for each endpoint.
 */
export interface AlertStore {
  /** Events that exist already stay as they are. */
  addEvents(events: readonly AlertEvent[]): Promise<void>
  /** Adds an event unless the last one of its subject has the same type. Without an earlier event, `usual` counts as the last. */
  addChange(event: AlertEvent, usual: EventType): Promise<void>
  /** Of those that are not dispatched yet, the oldest first. */
  eventsToDispatch(limit: number): Promise<readonly NamedEvent[]>
  /** Several processes may dispatch the same event: there is one delivery for each endpoint, and one body. */
  dispatchEvents(events: readonly DispatchedEvent[], now: number): Promise<void>
  /** Takes a delivery to an endpoint that is due, unless the endpoint is disabled. */
  claimDelivery(endpoint: EndpointPlace, now: number, leaseUntil: number): Promise<ClaimedDelivery | undefined>
  finishDelivery(claimed: ClaimedDelivery, outcome: DeliveryOutcome): Promise<void>
  /** A page of deliveries, the newest first. */
  deliveries(query: DeliveryQuery): Promise<readonly EventDelivery[]>
  delivery(id: string): Promise<EventDelivery | undefined>
  /** Sends a delivery again, from the first attempt on. false, with no effect, while it is being sent. */
  replayDelivery(id: string, now: number): Promise<boolean>
  /** Nothing is sent to the endpoint until it is enabled, or has another address. Its deliveries wait. */
  disableEndpoint(endpoint: EndpointPlace, now: number): Promise<void>
  enableEndpoint(name: string): Promise<void>
  disabledEndpoints(): Promise<readonly (EndpointPlace & { readonly disabledAt: number })[]>
  /** When the oldest delivery to these endpoints was created that waits to be sent. */
  oldestUndelivered(endpoints: readonly string[]): Promise<number | undefined>
  /** Takes or renews the lease of the process that watches the database. false, with no effect, while another has it. */
  leaseWatch(owner: string, now: number, leaseUntil: number): Promise<boolean>
  /** Deletes the events of before this time, with their deliveries. */
  forgetEvents(before: number): Promise<void>
}
