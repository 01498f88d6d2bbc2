import { setTimeout as sleep } from 'node:timers/promises'
import { openAlerts, type Alerts, type DeliveryView, type EndpointView } from '../alerts.ts'
import { eventTypes, type EventType } from '../event-table.ts'
import type { EventDelivery } from '../alert-store.ts'
import { systemClock } from '../../shared/system-clock.ts'
import { parseFlags, ProblemsFound, UsageError, withStore, type Command, type Flags } from '../../cli/command.ts'
import { renderTable, type Column } from '../../cli/terminal/table.ts'
import { minuteText, ZONE } from '../../cli/terminal/times.ts'

const ENDPOINT_COLUMNS: readonly Column<EndpointView>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'KIND', cell: ({ kind }) => kind },
  { title: 'ADDRESS', cell: ({ url }) => url, mayShrink: true },
  { title: 'EVENTS', cell: ({ events }) => events?.join(', ') ?? 'all', mayShrink: true },
  { title: 'WORKSPACE', cell: ({ workspace }) => workspace },
  { title: 'DISABLED', cell: ({ disabled_at }) => disabled_at && minuteText(Date.parse(disabled_at)) },
]
const DELIVERY_COLUMNS: readonly Column<DeliveryView>[] = [
  { title: 'ID', cell: ({ id }) => id },
  { title: `CREATED (${ZONE})`, cell: ({ created_at }) => minuteText(Date.parse(created_at)) },
  { title: 'EVENT', cell: ({ event }) => event },
  { title: 'ENDPOINT', cell: ({ endpoint }) => endpoint, mayShrink: true },
  { title: 'STATE', cell: ({ state }) => state },
  { title: 'ATTEMPTS', cell: ({ attempts }) => String(attempts), align: 'right' },
  { title: 'LAST ERROR', cell: ({ last_error }) => last_error, mayShrink: true },
]
const states = ['queued', 'sent', 'failed'] as const

/** Longer than the service needs to notice the test and to give up an attempt. */
const TEST_MS = 20_000
const POLL_MS = 200

export const webhooks: Command = {
  summary: 'list, test and replay webhooks and e-mails for events',
  help: `weir webhooks list
weir webhooks test NAME
weir webhooks deliveries [--endpoint NAME] [--event TYPE] [--state S]
                         [--limit N] [--before ID]
weir webhooks replay ID

"list" shows the endpoints of weir.yaml. "test" sends an event to one of them
through the running service, and shows what came of it. "deliveries" shows what
was sent, the newest first. "replay" sends an event again, under the same id.
A test or a replay enables an endpoint whose receiver answered 410.
docs/guides/webhooks.md explains events.

  --endpoint NAME  the name of a webhook, or mailto: and an address
  --event TYPE     such as invoice.issued
  --state S        ${states.join(', ')}
  --limit N        how many deliveries to list, 1 to 10000; by default 1000
  --before ID      continue after the delivery with this id`,
  async run(args) {
    const options = { endpoint: 'string', event: 'string', state: 'string', limit: 'string', before: 'string' } as const
    const flags = parseFlags(args, options, 2)
    const [action, name] = flags.positionals
    if (action !== 'test' && action !== 'replay') flags.refuseMore(1)
    await withStore(flags, { changes: false }, async ({ config, store, record }) => {
      const alerts = openAlerts(store, systemClock, config.alerts.endpoints)
      switch (action) {
        case 'list': {
          const data = await alerts.endpoints()
          const none = 'weir.yaml has no alerts: docs/guides/webhooks.md shows how to add them.'
          const text = (table: string): string => (data.length === 0 ? none : table)
          return flags.print({ object: 'list', data }, (view) => text(renderTable(data, ENDPOINT_COLUMNS, view)))
        }
        case 'deliveries':
          return listDeliveries(flags, alerts)
        case 'test': {
          if (!name) throw new UsageError('give the name of the endpoint: weir webhooks test NAME')
          const test = { action: 'testAlertEndpoint', subject: name, body: undefined, state: async () => undefined }
          return show(flags, alerts, await record(test, () => alerts.test(name)))
        }
        case 'replay': {
          if (!name) throw new UsageError('give the id of the delivery: weir webhooks replay ID')
          const state = () => alerts.delivery(name)
          const replay = { action: 'replayAlertDelivery', subject: name, body: undefined, state }
          return show(flags, alerts, await record(replay, () => alerts.replay(name)))
        }
        default:
          throw new UsageError('choose an action: list, test, deliveries or replay')
      }
    })
  },
}

async function listDeliveries(flags: Flags, alerts: Alerts): Promise<void> {
  const { data, next } = await alerts.page({
    endpoint: flags.text('endpoint'),
    type: oneOf<EventType>(flags, 'event', eventTypes),
    state: oneOf<EventDelivery['state']>(flags, 'state', states),
    before: flags.text('before'),
    limit: flags.limit(),
  })
  flags.print({ object: 'list', data, next }, (view) =>
    [
      renderTable(data, DELIVERY_COLUMNS, view),
      ...(next === null ? [] : [`\nThere are more deliveries: see them with --before ${next}.`]),
    ].join('\n'),
  )
}

function oneOf<Value extends string>(flags: Flags, name: string, values: readonly Value[]): Value | undefined {
  const given = flags.text(name)
  const found = values.find((value) => value === given)
  if (given === undefined || found !== undefined) return found
  throw new UsageError(`--${name} must be one of ${values.join(', ')}`)
}

/** Waits until the service has tried it. */
async function show(flags: Flags, alerts: Alerts, { id }: DeliveryView): Promise<void> {
  const until = systemClock.monotonic() + TEST_MS
  let delivery = await alerts.delivery(id)
  const isOpen = (): boolean => delivery.state === 'queued' && delivery.last_error === null
  while (isOpen() && systemClock.monotonic() < until) {
    await sleep(POLL_MS)
    delivery = await alerts.delivery(id)
  }
  flags.print(delivery, () => outcomeText(delivery))
  if (delivery.state !== 'sent') throw new ProblemsFound('the event was not delivered')
}

function outcomeText({ id, endpoint, event_id, state, last_error }: DeliveryView): string {
  if (state === 'sent') return `Delivered ${event_id} to ${endpoint}.`
  if (last_error !== null) return `Not delivered to ${endpoint}: ${last_error}. The delivery is ${id}.`
  return `Queued ${id} for ${endpoint}. Nothing was sent yet: is the service running?`
}
