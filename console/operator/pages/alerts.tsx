import { useState } from 'preact/hooks'
import { Problem, useAction, type PageAction } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { bellIcon } from '../../shared/icons.ts'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Code, Empty, Moment, PageHead, Ready, Segments, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { may } from '../session.tsx'

const EXAMPLE = `alerts:
  webhooks:
    - name: ops
      url: https://ops.example.com/weir
      secret_env: OPS_WEBHOOK_SECRET`

/** Who is notified of events, and what was sent. */

type Endpoint = Answer<'alertEndpoints'>['data'][number]
type Delivery = Answer<'alertDeliveries'>['data'][number]

const shown = [
  ['', 'All'],
  ['queued', 'Waiting'],
  ['sent', 'Delivered'],
  ['failed', 'Failed'],
] as const

export function AlertsPage() {
  const [state, setState] = useState<Delivery['state'] | ''>('')
  const endpoints = useData((signal) => api('alertEndpoints', { signal }))
  const pages = usePages(
    (before: string | undefined, signal) =>
      api('alertDeliveries', {
        query: { limit: 25, ...(state === '' ? {} : { state }), ...(before === undefined ? {} : { before }) },
        signal,
      }),
    [state],
  )
  const action = useAction()
  const [note, setNote] = useState('')
  const act = async (done: string, work: () => Promise<unknown>): Promise<void> => {
    setNote('')
    const hasWorked = await action.run(async () => void (await work()))
    if (!hasWorked) return
    setNote(done)
    endpoints.reload()
    pages.reload()
  }
  const test = (name: string): void =>
    void act(`A test for ${name} is queued. It is sent in the next seconds.`, () =>
      api('testAlertEndpoint', { path: { name } }),
    )
  const replay = ({ id, event }: Delivery): void =>
    void act(`${event} is queued again, under the same id.`, () => api('replayAlertDelivery', { path: { id } }))
  return (
    <>
      <PageHead title="Alerts" about="Webhooks and e-mails for events, and what was sent in the last 90 days." />
      <Problem of={action} />
      <p role="status" class="soft">
        {note}
      </p>
      <Ready of={endpoints}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty icon={bellIcon} title="There are no endpoints yet">
              <span>
                Add webhooks and e-mail addresses to <code>weir.yaml</code>:
              </span>
              <Code text={EXAMPLE} label="An example of alerts in weir.yaml" />
            </Empty>
          ) : (
            <Table
              caption="Endpoints"
              rows={data}
              keyOf={({ name }) => name}
              columns={endpointColumns(action, may('testAlertEndpoint') ? test : undefined)}
            />
          )
        }
      </Ready>
      <h2>Deliveries</h2>
      <div class="row">
        <Segments label="Deliveries to show" value={state} options={shown} choose={setState} />
        <button type="button" onClick={pages.reload}>
          Refresh
        </button>
      </div>
      <Paged of={pages}>
        {(deliveries) =>
          deliveries.length === 0 ? (
            <Empty title="No deliveries">Each event is listed here once for each endpoint that it is sent to.</Empty>
          ) : (
            <Table
              caption="Deliveries"
              rows={deliveries}
              keyOf={({ id }) => id}
              columns={deliveryColumns(action, may('replayAlertDelivery') ? replay : undefined)}
            />
          )
        }
      </Paged>
    </>
  )
}

/** Without `test`, the person may only read. */
function endpointColumns({ isRunning }: PageAction, test: ((name: string) => void) | undefined) {
  const columns = [
    { title: 'Endpoint', cell: ({ name }: Endpoint) => <span class="name-cell">{name.replace('mailto:', '')}</span> },
    {
      title: 'State',
      cell: ({ disabled_at: since }: Endpoint) =>
        since === null ? (
          <State is="good">Active</State>
        ) : (
          <>
            <State is="bad">Disabled</State> since <Moment at={since} />
          </>
        ),
    },
    {
      title: 'Address',
      cell: ({ kind, url }: Endpoint) => (kind === 'email' ? 'E-mail' : <span class="name-cell">{url}</span>),
    },
    { title: 'Events', cell: ({ events }: Endpoint) => <span class="wrap">{events?.join(', ') ?? 'All'}</span> },
    { title: 'Workspace', cell: ({ workspace }: Endpoint) => workspace ?? 'All' },
  ]
  if (!test) return columns
  return [
    ...columns,
    {
      title: 'Action',
      isAction: true as const,
      cell: ({ name }: Endpoint) => (
        <button type="button" class="plain" disabled={isRunning} aria-label={`Test ${name}`} onClick={() => test(name)}>
          Test
        </button>
      ),
    },
  ]
}

/** Without `replay`, the person may only read. */
function deliveryColumns({ isRunning }: PageAction, replay: ((delivery: Delivery) => void) | undefined) {
  const columns = [
    {
      title: 'Event',
      cell: ({ event, event_id: id, body }: Delivery) => (
        <details class="small">
          <summary>{event}</summary>
          <div class="wrap">
            <code>{id}</code>
          </div>
          <div class="wrap soft">
            <code>{body}</code>
          </div>
        </details>
      ),
    },
    {
      title: 'Endpoint',
      cell: ({ endpoint }: Delivery) => <span class="name-cell">{endpoint.replace('mailto:', '')}</span>,
    },
    { title: 'State', cell: (delivery: Delivery) => <DeliveryState of={delivery} /> },
    { title: 'Created', cell: ({ created_at: at }: Delivery) => <Moment at={at} /> },
    { title: 'Attempts', isNumber: true as const, cell: ({ attempts }: Delivery) => String(attempts) },
  ]
  if (!replay) return columns
  return [
    ...columns,
    {
      title: 'Action',
      isAction: true as const,
      cell: (delivery: Delivery) => (
        <button
          type="button"
          class="plain"
          disabled={isRunning}
          aria-label={`Replay ${delivery.event} to ${delivery.endpoint}`}
          onClick={() => replay(delivery)}
        >
          Replay
        </button>
      ),
    },
  ]
}

function DeliveryState({
  of: { state, sent_at: sentAt, next_attempt_at: nextAt, last_error: error },
}: {
  of: Delivery
}) {
  return (
    <>
      {state === 'sent' ? <State is="good">Delivered</State> : null}
      {state === 'queued' ? <State is="warn">Waiting</State> : null}
      {state === 'failed' ? <State is="bad">Failed</State> : null}
      {error === null ? null : <div class="small wrap">{error}</div>}
      {sentAt === null ? null : (
        <div class="small soft">
          <Moment at={sentAt} />
        </div>
      )}
      {nextAt === null ? null : (
        <div class="small soft">
          Next try: <Moment at={nextAt} />
        </div>
      )}
    </>
  )
}
