import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { alertEvent, deliveryId } from '../../src/alerts/events.ts'
import { webhooks } from '../../src/alerts/commands/webhooks.ts'
import { ProblemsFound, UsageError } from '../../src/cli/command.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { booksStage, MARCH, type BooksStage } from '../support/books-stage.ts'
import { printedOnTerminal } from '../support/printed.ts'
import { eventually } from '../support/waiting.ts'

/** `weir webhooks` beside a store. What the service sends is scripted. */

const url = 'https://ops.example.com/weir'
const hook = { name: 'ops', url, secret_env: 'HOOK' }
const alerts = {
  webhooks: [hook, { ...hook, name: 'few', events: ['key.created', 'key.revoked'], workspace: 'acme' }],
}

/** Deliveries of these models to `ops`, one minute after the other, and of none to `few`. */
async function stage(t: TestContext, ...models: readonly string[]) {
  const made = await booksStage(t, { alerts })
  const { store } = made.books
  const ids: string[] = []
  for (const [index, model] of models.entries()) {
    const at = MARCH + index * 60_000
    const event = alertEvent('download.finished', { unique: [model], at, data: { model } })
    await store.addEvents([event])
    await store.dispatchEvents([{ id: event.id, body: '{}', endpoints: ['ops'] }], at)
    ids.push(deliveryId(event.id, 'ops'))
  }
  return { ...made, ids }
}

/** The service's attempt at the next delivery. */
async function attempt(
  { books: { store } }: BooksStage,
  state: 'sent' | 'queued' | 'failed',
  lastError: string | null,
) {
  await eventually('there is a delivery', async () => {
    const now = Date.now()
    const claimed = await store.claimDelivery({ name: 'ops', url }, now, now + 30_000)
    if (!claimed) return false
    await store.finishDelivery(claimed, { state, nextAttemptAt: now, sentAt: now, lastError })
    return true
  })
}

describe('weir webhooks', () => {
  it('lists the endpoints, or says how to add one', async (t) => {
    const made = await stage(t)
    await made.books.store.disableEndpoint({ name: 'few', url }, MARCH)
    assert.equal(
      await made.shown('webhooks list'),
      `NAME  KIND     ADDRESS                       EVENTS                    WORKSPACE  DISABLED
ops   webhook  https://ops.example.com/weir  all                       -          -
few   webhook  https://ops.example.com/weir  key.created, key.revoked  acme       2025-03-15 12:30`,
    )
    const { object, data } = JSON.parse(await made.shown('webhooks list --json'))
    assert.deepEqual([object, data.length], ['list', 2])
    const narrow = await printedOnTerminal(80, webhooks, 'list', '--config', made.config, '--data', made.dataDir)
    for (const line of narrow.split('\n')) assert.ok(line.length <= 80, line)
    assert.match(await (await booksStage(t)).shown('webhooks list'), /docs\/guides\/webhooks\.md/)
  })

  it('lists deliveries in pages, of one endpoint, event or state', async (t) => {
    const made = await stage(t, 'a', 'b')
    const [first, second] = made.ids
    await attempt(made, 'queued', 'HTTP 500')
    assert.equal(
      await made.shown('webhooks deliveries'),
      `ID                                    CREATED (Sydney)  EVENT              ENDPOINT  STATE   ATTEMPTS  LAST ERROR
${second}  2025-03-15 12:31  download.finished  ops       queued         0  -
${first}  2025-03-15 12:30  download.finished  ops       queued         1  HTTP 500`,
    )
    const more = `\n\nThere are more deliveries: see them with --before ${second}.`
    assert.ok((await made.shown('webhooks deliveries --limit 1')).endsWith(more))
    const found = async (options: string) => {
      const { object, data, next } = JSON.parse(await made.shown(`webhooks deliveries --json ${options}`))
      assert.deepEqual([object, next], ['list', null])
      return data.map(({ id }: { id: string }) => id)
    }
    assert.deepEqual(await found(`--before ${second}`), [first])
    assert.deepEqual(await found('--endpoint few'), [])
    assert.deepEqual(await found('--event key.created'), [])
    assert.deepEqual(await found('--event download.finished --endpoint ops --state queued'), [second, first])
    assert.deepEqual(await found('--state sent'), [])
  })

  it('tests an endpoint and replays a delivery through the service, and shows what came of it', async (t) => {
    const made = await stage(t, 'a')
    const [id] = made.ids
    await attempt(made, 'failed', 'HTTP 500')
    const [replayed] = await Promise.all([made.run(`webhooks replay ${id}`), attempt(made, 'sent', null)])
    assert.equal(replayed.failure, undefined)
    assert.match(replayed.stdout, /^Delivered evt_\w+ to ops\.\n$/)
    const [tested] = await Promise.all([made.run('webhooks test ops'), attempt(made, 'queued', 'HTTP 500')])
    assert.ok(tested.failure instanceof ProblemsFound)
    const [, delivery] = /^Not delivered to ops: HTTP 500\. The delivery is (dlv_\w+)\.\n$/.exec(tested.stdout) ?? []
    assert.ok(delivery !== undefined && delivery !== id)
    assert.deepEqual(await made.audit(2), [
      ['replayAlertDelivery', id, null, 'done'],
      ['testAlertEndpoint', 'ops', null, 'done'],
    ])
  })

  it('waits 20 s for the service', async (t) => {
    const made = await stage(t)
    const times = [0, 19_999, 20_000]
    const monotonic = t.mock.method(systemClock, 'monotonic', () => times.shift() ?? assert.fail('it waits on'))
    const { stdout, failure } = await made.run('webhooks test ops')
    monotonic.mock.restore()
    assert.ok(failure instanceof ProblemsFound)
    assert.match(stdout, /^Queued dlv_\w+ for ops\. Nothing was sent yet: is the service running\?\n$/)
    assert.deepEqual(times, [])
  })

  it('refuses what does not exist', async (t) => {
    const made = await stage(t)
    for (const [line, message] of [
      ['', 'choose an action: list, test, deliveries or replay'],
      ['lists', 'choose an action: list, test, deliveries or replay'],
      ['list ops', 'unexpected argument "ops"; put names with spaces in quotes'],
      ['test', 'give the name of the endpoint: weir webhooks test NAME'],
      ['test ops more', 'unexpected argument "more"; put names with spaces in quotes'],
      ['replay', 'give the id of the delivery: weir webhooks replay ID'],
      ['deliveries --state lost', '--state must be one of queued, sent, failed'],
      ['deliveries --limit 0', '--limit must be a whole number from 1 to 10000'],
    ] as const)
      assert.deepEqual(await made.failed(`webhooks ${line}`), [UsageError, message])
    assert.match(String((await made.failed('webhooks deliveries --event lost'))[1]), /^--event must be one of spend\./)
    for (const line of ['test missing', 'replay dlv_0'])
      assert.equal((await made.failed(`webhooks ${line}`))[0], ApiError, line)
  })
})
