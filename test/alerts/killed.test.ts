import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryView } from '../../src/alerts/alerts.ts'
import { runLength } from '../support/long-run.ts'
import { OPERATOR_TOKEN } from '../support/weir.ts'
import { BUSY_MACHINE_MS, weirProcess, type WeirProcess } from '../support/weir-process.ts'
import { WEBHOOK_SECRET, webhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { eventually } from '../support/waiting.ts'

/** The service is killed with SIGKILL, and the receiver stops, while events are created and delivered. */

const ROUNDS = runLength(2, 4)
const KEYS_IN_ROUND = 5

async function admin(weir: WeirProcess, method: string, path: string, body?: object): Promise<Response> {
  return fetch(weir.adminUrl + path, {
    method,
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
}

async function stage(t: TestContext): Promise<{ readonly weir: WeirProcess; readonly receiver: WebhookReceiver }> {
  const receiver = await webhookReceiver()
  t.after(() => receiver.stop())
  const hook = { name: 'hook', url: receiver.url, secret_env: 'HOOK', allow_private: true, events: ['key.created'] }
  const config = { server: { port: 0, admin_port: 0 }, models: [], alerts: { webhooks: [hook] } }
  const weir = await weirProcess(config, { HOOK: WEBHOOK_SECRET, WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN })
  t.after(() => weir.remove())
  return { weir, receiver }
}

async function deliveries(weir: WeirProcess): Promise<readonly DeliveryView[]> {
  const answer = await admin(weir, 'GET', '/admin/v1/alerts/deliveries?limit=200')
  return ((await answer.json()) as { data: readonly DeliveryView[] }).data
}

it('no event is lost, and none is delivered under a second id, when service and receiver are killed', async (t) => {
  const { weir, receiver } = await stage(t)
  const created: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    // The next kill comes while the receiver keeps the service waiting, while it is away, or after it has answered.
    receiver.answer = round % 2 === 0 ? undefined : { status: 204 }
    if (round === ROUNDS - 1) await receiver.stop()
    for (let key = 0; key < KEYS_IN_ROUND; key++) {
      const answer = await admin(weir, 'POST', '/admin/v1/keys', { workspace: 'default' })
      assert.equal(answer.status, 201)
      created.push(((await answer.json()) as { id: string }).id)
    }
    const before = receiver.received.length
    if (round < ROUNDS - 1)
      await eventually('one is being sent', () => receiver.received.length > before, BUSY_MACHINE_MS)
    else
      await eventually(
        'one was tried',
        async () => (await deliveries(weir)).some((it) => it.last_error !== null),
        BUSY_MACHINE_MS,
      )
    weir.signal('SIGKILL')
    await weir.ended()
    await weir.start()
  }
  receiver.answer = { status: 204 }
  await receiver.start()
  const until = performance.now() + BUSY_MACHINE_MS
  for (;;) {
    const open = (await deliveries(weir)).filter(({ state }) => state !== 'sent')
    if (open.length === 0) break
    assert.ok(performance.now() < until, JSON.stringify(open))
    // An operator does not wait until the schedule goes on.
    for (const { id, attempts } of open)
      if (attempts > 1) await admin(weir, 'POST', `/admin/v1/alerts/deliveries/${id}/replay`)
    await sleep(1000)
  }
  const idsOf = Map.groupBy(receiver.received, ({ event }) => String(event.data['key_id']))
  for (const key of created) assert.equal(new Set(idsOf.get(key)?.map(({ id }) => id)).size, 1, key)
  assert.equal(new Set(receiver.received.map(({ id }) => id)).size, idsOf.size)
  t.diagnostic(`${idsOf.size} events in ${receiver.received.length} attempts that arrived`)
})
