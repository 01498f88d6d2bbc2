import { withoutPassword } from '../shared/address-without-password.ts'
import { ApiError } from '../shared/errors.ts'
import type { Clock } from '../shared/clock.ts'
import type { AlertStore, EventDelivery, DeliveryQuery } from './alert-store.ts'
import type { AlertEndpoint } from './endpoints.ts'
import { alertEvent, bodyOf, deliveryId } from './events.ts'

/** A delivery as operators see it. */
export interface DeliveryView {
  readonly id: string
  readonly event_id: string
  readonly event: string
  readonly endpoint: string
  readonly state: EventDelivery['state']
  readonly attempts: number
  readonly created_at: string
  readonly sent_at: string | null
  /** null: it is not tried again. */
  readonly next_attempt_at: string | null
  readonly last_error: string | null
  readonly body: string
}

export interface EndpointView {
  readonly name: string
  readonly kind: AlertEndpoint['kind']
  readonly url: string
  /** null: all. */
  readonly events: readonly string[] | null
  readonly workspace: string | null
  /** Since when nothing is sent, because the receiver answered that it is gone. */
  readonly disabled_at: string | null
}

/** What operators see of alerts, and do with them. */
export interface Alerts {
  endpoints(): Promise<readonly EndpointView[]>
  /** A page, the newest first. `before` is the id of the last delivery of the page before. */
  page(
    query: Omit<DeliveryQuery, 'before'> & { readonly before?: string | undefined },
  ): Promise<{ readonly data: readonly DeliveryView[]; readonly next: string | null }>
  /** Throws `not_found`. */
  delivery(id: string): Promise<DeliveryView>
  /** Sends an event again, under the same id. A disabled endpoint is enabled. */
  replay(id: string): Promise<DeliveryView>
  /** Sends a test event. A disabled endpoint is enabled. */
  test(endpoint: string): Promise<DeliveryView>
}

export function openAlerts(store: AlertStore, clock: Clock, endpoints: readonly AlertEndpoint[]): Alerts {
  async function found(id: string): Promise<EventDelivery> {
    const delivery = await store.delivery(id)
    if (!delivery) throw new ApiError('not_found', `There is no delivery "${id}".`, { param: 'id' })
    return delivery
  }

  function configured(name: string): AlertEndpoint {
    const endpoint = endpoints.find((it) => it.name === name)
    if (!endpoint) throw new ApiError('not_found', `weir.yaml has no endpoint "${name}".`, { param: 'name' })
    return endpoint
  }

  return {
    async endpoints() {
      const disabled = await store.disabledEndpoints()
      return endpoints.map(({ name, kind, url, events, workspace }) => {
        const since = disabled.find((it) => it.name === name && it.url === url)?.disabledAt
        return {
          name,
          kind,
          url: withoutPassword(url),
          events: events ?? null,
          workspace: workspace ?? null,
          disabled_at: since === undefined ? null : new Date(since).toISOString(),
        }
      })
    },
    async page({ before: id, limit, ...query }) {
      const before = id === undefined ? undefined : await store.delivery(id)
      if (id !== undefined && !before) {
        throw new ApiError('invalid_value', "'before' must be the 'next' value of the previous page.", {
          param: 'before',
        })
      }
      const rows = await store.deliveries({ ...query, before, limit: limit + 1 })
      const data = rows.slice(0, limit).map(viewOf)
      return { data, next: rows.length > limit ? (data.at(-1)?.id ?? null) : null }
    },
    delivery: async (id) => viewOf(await found(id)),
    async replay(id) {
      const { endpoint } = await found(id)
      await store.enableEndpoint(configured(endpoint).name)
      if (await store.replayDelivery(id, clock.now())) return viewOf(await found(id))
      throw new ApiError('conflict', 'It is being sent at the moment. Look at it again in a minute.')
    },
    async test(name) {
      const { name: endpoint } = configured(name)
      const at = clock.now()
      const event = alertEvent('webhook.test', { unique: [endpoint, at], at, data: { endpoint } })
      await store.enableEndpoint(endpoint)
      await store.addEvents([event])
      const body = bodyOf({ ...event, workspace: null, keyName: null, keyEnding: null })
      await store.dispatchEvents([{ id: event.id, body, endpoints: [endpoint] }], at)
      return viewOf(await found(deliveryId(event.id, endpoint)))
    },
  }
}

function viewOf(it: EventDelivery): DeliveryView {
  return {
    id: it.id,
    event_id: it.eventId,
    event: it.type,
    endpoint: it.endpoint,
    state: it.state,
    attempts: it.attempts,
    created_at: new Date(it.createdAt).toISOString(),
    sent_at: it.sentAt === null ? null : new Date(it.sentAt).toISOString(),
    next_attempt_at: it.state === 'queued' ? new Date(it.nextAttemptAt).toISOString() : null,
    last_error: it.lastError,
    body: it.body,
  }
}
