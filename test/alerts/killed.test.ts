import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { DeliveryView } from '../../src/alerts/alerts.ts'
import { collect } from '../support/cli.ts'
import { freePort } from '../support/free-port.ts'
import { runLength } from '../support/long-run.ts'
import { eventually } from '../support/waiting.ts'
import { WEBHOOK_SECRET } from '../support/webhook-receiver.ts'
import { OPERATOR_TOKEN } from '../support/weir.ts'
import { BUSY_MACHINE_MS, weirProcess, type WeirProcess } from '../support/weir-process.ts'

/** The service and the receiver are killed with SIGKILL while events are created and delivered. */

const ROUNDS = runLength(2, 4)
const KEYS_IN_ROUND = 5

async function admin(weir: WeirProcess, method: string, path: string, body?: object): Promise<Response> {
  return fetch(weir.adminUrl + path, {
    method,
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
}

/** A process that receives webhooks, and answers with this status or never. */
interface Receiver {
  /** What has arrived: the id of an event, and the key that it is about. */
  received(): readonly (readonly [id: string, key: string])[]
  kill(): Promise<void>
}

async function startReceiver(t: TestContext, port: number, status?: number): Promise<Receiver> {
  const program = fileURLToPath(new URL('../support/webhook-receiver-program.ts', import.meta.url))
  const answer = status === undefined ? [] : [String(status)]
  const child = spawn(process.execPath, [program, String(port), ...answer], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const output = collect(child.stdout)
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  t.after(kill)
  await eventually('the receiver runs', () => output().startsWith('ready\n'), BUSY_MACHINE_MS)
  return {
    received: () =>
      output()
        .split('\n')
        .slice(1, -1)
        .map((line) => line.split(' ') as [string, string]),
    kill,
  }
}

async function stage(t: TestContext): Promise<{ readonly weir: WeirProcess; readonly port: number }> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/hook`
  const hook = { name: 'hook', url, secret_env: 'HOOK', allow_private: true, events: ['key.created'] }
  const config = { server: { port: 0, admin_port: 0 }, models: [], alerts: { webhooks: [hook] } }
  const weir = await weirProcess(config, { HOOK: WEBHOOK_SECRET, WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN })
  t.after(() => weir.remove())
  return { weir, port }
}

async function deliveries(weir: WeirProcess): Promise<readonly DeliveryView[]> {
  const answer = await admin(weir, 'GET', '/admin/v1/alerts/deliveries?limit=200')
  return ((await answer.json()) as { data: readonly DeliveryView[] }).data
}

it('no event is lost, and none is delivered under a second id, when service and receiver are killed', async (t) => {
  const { weir, port } = await stage(t)
  const created: string[] = []
  const received: (readonly [id: string, key: string])[] = []
  for (let round = 0; round < ROUNDS; round++) {
    // The service is killed while it waits for an answer; or when the receiver was killed, and an attempt has failed.
    const isReceiverFirst = round % 2 === 1
    const receiver = await startReceiver(t, port)
    for (let key = 0; key < KEYS_IN_ROUND; key++) {
      const answer = await admin(weir, 'POST', '/admin/v1/keys', { workspace: 'default' })
      assert.equal(answer.status, 201)
      created.push(((await answer.json()) as { id: string }).id)
    }
    await eventually('one is being sent', () => receiver.received().length > 0, BUSY_MACHINE_MS)
    if (isReceiverFirst) {
      await receiver.kill()
      const hasFailed = async (): Promise<boolean> => (await deliveries(weir)).some((it) => it.last_error !== null)
      await eventually('an attempt has failed', hasFailed, BUSY_MACHINE_MS)
    }
    weir.signal('SIGKILL')
    await weir.ended()
    await receiver.kill()
    received.push(...receiver.received())
    await weir.start()
  }
  const receiver = await startReceiver(t, port, 204)
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
  const delivered = receiver.received()
  received.push(...delivered)
  const idsOf = Map.groupBy(received, ([, key]) => key)
  for (const key of created) assert.equal(new Set(idsOf.get(key)?.map(([id]) => id)).size, 1, key)
  assert.equal(new Set(received.map(([id]) => id)).size, idsOf.size)
  const isDelivered = new Set(delivered.map(([, key]) => key))
  for (const key of created) assert.ok(isDelivered.has(key), key)
  t.diagnostic(`${idsOf.size} events in ${received.length} attempts that arrived`)
})
