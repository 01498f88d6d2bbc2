import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { DeliveryView, EndpointView } from '../../src/alerts/alerts.ts'
import { commandLine } from '../support/command-line.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'
import { WEBHOOK_SECRET, webhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { eventually } from '../support/waiting.ts'

/** A service with a webhook: what operators see in the API and on the command line. */

let weir: TestWeir
let receiver: WebhookReceiver
const environment = { HOOK: WEBHOOK_SECRET }

before(async () => {
  receiver = await webhookReceiver()
  const hook = { name: 'ops', url: receiver.url, secret_env: 'HOOK', allow_private: true }
  weir = await startWeir(
    { models: [], alerts: { webhooks: [hook, { ...hook, name: 'refused', allow_private: false }] } },
    environment,
  )
})
after(async () => {
  await weir.stop()
  await receiver.stop()
})

const read = async <Shape>(path: string): Promise<Shape> => (await (await weir.admin('GET', path)).json()) as Shape
const page = (query = '') =>
  read<{ readonly data: readonly DeliveryView[]; readonly next: string | null }>(`/admin/v1/alerts/deliveries${query}`)
const webhooks = (...args: readonly string[]) =>
  commandLine(['webhooks', ...args, '--config', weir.configFile, '--data', weir.dataDir, '--json'], { environment })

describe('a service with a webhook', () => {
  it('sends the event of a key that it creates, and shows the delivery', async () => {
    const created = await weir.admin('POST', '/admin/v1/keys', { workspace: 'default', name: 'build' })
    const { id } = (await created.json()) as { id: string }
    const ofKey = () => receiver.received.find(({ event }) => event.data['key_id'] === id)
    await eventually('the event arrives', () => ofKey() !== undefined, 60_000)
    const sent = ofKey()!
    assert.deepEqual(
      [sent.event.type, sent.event.data['workspace'], sent.event.data['key_name']],
      ['key.created', 'default', 'build'],
    )
    await eventually(
      'it is marked',
      async () => (await page('?endpoint=ops&state=sent')).data.some((it) => it.event_id === sent.id),
      60_000,
    )
    const refused = async () =>
      (await page('?endpoint=refused&event=key.created')).data.find((it) => it.event_id === sent.id)
    await eventually(
      'the private address is refused',
      async () => ((await refused())?.last_error ?? null) !== null,
      60_000,
    )
    assert.match((await refused())?.last_error ?? '', /127\.0\.0\.1 is a private address/)
  })

  it('lists its endpoints, tests them and replays deliveries', async () => {
    const { data } = await read<{ readonly data: readonly EndpointView[] }>('/admin/v1/alerts/endpoints')
    const all = { kind: 'webhook', url: receiver.url.split('?')[0], events: null, workspace: null, disabled_at: null }
    assert.deepEqual(data, [
      { name: 'ops', ...all },
      { name: 'refused', ...all },
    ])
    const tested = (await (await weir.admin('POST', '/admin/v1/alerts/endpoints/ops/test')).json()) as DeliveryView
    const arrived = () => receiver.received.filter(({ id }) => id === tested.event_id).length
    await eventually('the test arrives', () => arrived() === 1, 60_000)
    await eventually(
      'it is marked',
      async () => (await page()).data.find(({ id }) => id === tested.id)?.state === 'sent',
      60_000,
    )
    const replayed = await weir.admin('POST', `/admin/v1/alerts/deliveries/${tested.id}/replay`)
    assert.equal(((await replayed.json()) as DeliveryView).state, 'queued')
    await eventually('it arrives again', () => arrived() === 2, 60_000)
    assert.equal((await weir.admin('POST', '/admin/v1/alerts/endpoints/missing/test')).status, 404)
    assert.equal((await weir.admin('POST', '/admin/v1/alerts/deliveries/dlv_0/replay')).status, 404)
    assert.equal((await weir.admin('GET', '/admin/v1/alerts/deliveries?event=nothing')).status, 400)
    const log = await read<{ data: { action: string; subject: string }[] }>('/admin/v1/audit-log?limit=2')
    assert.ok(log.data.some(({ action, subject }) => action === 'testAlertEndpoint' && subject === 'missing'))
  })

  it('is tested from the command line', async () => {
    const listed = (await webhooks('list')).json<{ data: EndpointView[] }>()
    assert.deepEqual(
      listed.data.map(({ name }) => name),
      ['ops', 'refused'],
    )
    const tested = await webhooks('test', 'ops')
    assert.deepEqual([tested.code, tested.json<DeliveryView>().state], [0, 'sent'])
    const refused = await webhooks('test', 'refused')
    assert.deepEqual([refused.code, (JSON.parse(refused.stdout) as DeliveryView).state], [1, 'queued'])
    const { data, next } = (
      await webhooks('deliveries', '--event', 'webhook.test', '--endpoint', 'ops', '--limit', '1')
    ).json<{
      data: DeliveryView[]
      next: string
    }>()
    assert.deepEqual([data.length, next], [1, data[0]?.id])
    const replayed = await webhooks('replay', tested.json<DeliveryView>().id)
    assert.deepEqual([replayed.code, replayed.json<DeliveryView>().event_id], [0, tested.json<DeliveryView>().event_id])
    assert.equal((await webhooks('test', 'missing')).code, 1)
    assert.equal((await webhooks('deliveries', '--state', 'lost')).code, 2)
  })

  it('counts deliveries in its metrics', async () => {
    const text = await (await weir.admin('GET', '/metrics')).text()
    assert.match(text, /^weir_alert_deliveries_total\{endpoint="ops",result="sent"\} [1-9]/m)
    assert.match(text, /^weir_alert_deliveries_total\{endpoint="refused",result="retried"\} [1-9]/m)
    assert.match(text, /^weir_alert_oldest_undelivered_seconds \d/m)
  })
})
