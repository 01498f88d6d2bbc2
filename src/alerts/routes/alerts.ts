import { Type } from 'typebox'
import type { Alerts } from '../alerts.ts'
import { eventTypes } from '../event-table.ts'
import { EXAMPLE_TIME, nullable, pageSchema } from '../../server/common-schema.ts'
import { jsonResponse } from '../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

export interface AlertsParts {
  readonly alerts: Alerts
}

const states = ['queued', 'sent', 'failed'] as const
const ENDPOINT = 'The name of a webhook, or mailto: and an address.'

const DELIVERY = 'dlv_5f0c7d9e2b14a6f8d3e5c7005f0c7d9e'

const endpointSchema = Type.Object({
  name: Type.String({ description: ENDPOINT, example: 'ops' }),
  kind: Type.Enum(['webhook', 'email']),
  url: Type.String({ example: 'https://ops.example.com/weir' }),
  events: nullable(Type.Array(Type.String()), 'The events that it gets; null: all.'),
  workspace: nullable(Type.String(), 'It gets only events of this workspace; null: all events.'),
  disabled_at: nullable(
    Type.String(),
    'Since when nothing is sent, because the receiver answered 410. A test or a replay enables it.',
  ),
})

const deliverySchema = Type.Object({
  id: Type.String({ example: DELIVERY }),
  event_id: Type.String({
    description: 'The id of the event: the same for every endpoint and every attempt.',
    example: 'evt_2b14a6f8d3e5c7005f0c7d9e2b14a6f8',
  }),
  event: Type.String({ example: 'invoice.issued' }),
  endpoint: Type.String({ description: ENDPOINT, example: 'ops' }),
  state: Type.Enum([...states], { description: 'failed: it is not tried again, unless you replay it.' }),
  attempts: Type.Integer({ description: 'Counts every attempt that has begun.', example: 1 }),
  created_at: Type.String({ example: EXAMPLE_TIME }),
  sent_at: nullable(Type.String({ example: EXAMPLE_TIME })),
  next_attempt_at: nullable(Type.String(), 'null: it is not tried again.'),
  last_error: nullable(Type.String(), 'Why the last attempt failed.'),
  body: Type.String({ description: 'What is sent, as JSON.' }),
})

/** Who is notified of events, and what was sent. */
export function alertRoutes({ alerts }: AlertsParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/alerts/endpoints',
      id: 'alertEndpoints',
      summary: 'Who is notified of events',
      description: 'The webhooks and e-mail addresses of `alerts` in weir.yaml.',
      response: jsonResponse(Type.Object({ object: Type.Literal('list'), data: Type.Array(endpointSchema) })),
      errors: [],
      async answer({ exchange }) {
        exchange.sendJson(JSON.stringify({ object: 'list', data: await alerts.endpoints() }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/alerts/endpoints/{name}/test',
      id: 'testAlertEndpoint',
      summary: 'Send a test event',
      description: 'Sends an event `webhook.test` in the next seconds. An endpoint that is disabled is enabled.',
      parameters: { name: { description: ENDPOINT, example: 'ops' } },
      response: jsonResponse(deliverySchema),
      errors: ['not_found'],
      async answer({ exchange, parameters: { name } }) {
        exchange.sendJson(JSON.stringify(await alerts.test(name)))
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/alerts/deliveries',
      id: 'alertDeliveries',
      summary: 'The log of deliveries',
      description: 'Each event for each endpoint, the newest first, for 90 days.',
      query: Type.Object({
        state: Type.Optional(Type.Enum([...states], { description: 'Only deliveries in this state.' })),
        event: Type.Optional(Type.Enum([...eventTypes], { description: 'Only events of this type.' })),
        endpoint: Type.Optional(Type.String({ minLength: 1, maxLength: 300, description: ENDPOINT })),
        before: Type.Optional(Type.String({ maxLength: 64, description: "The 'next' of the previous page." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: '1 to 200, by default 50.' })),
      }),
      response: jsonResponse(pageSchema(deliverySchema)),
      errors: [],
      async answer({ exchange, query: { event, limit = 50, ...query } }) {
        exchange.sendJson(JSON.stringify({ object: 'list', ...(await alerts.page({ ...query, type: event, limit })) }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/alerts/deliveries/{id}/replay',
      id: 'replayAlertDelivery',
      summary: 'Send an event again',
      description: 'Sends it in the next seconds, under the same id. An endpoint that is disabled is enabled.',
      parameters: { id: { description: 'The id of a delivery.', example: DELIVERY } },
      response: jsonResponse(deliverySchema),
      errors: ['not_found', 'conflict'],
      state: async ({ parameters: { id } }) => alerts.delivery(id),
      async answer({ exchange, parameters: { id } }) {
        exchange.sendJson(JSON.stringify(await alerts.replay(id)))
      },
    }),
  ]
}
