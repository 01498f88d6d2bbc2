import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { it } from 'node:test'
import { Client } from 'undici'
import { seededRandom } from '../../src/shared/seeded-random.ts'
import { simulationSeed } from '../simulation/seed.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { nothingIsHeld } from '../support/held-bytes.ts'
import { chargeOf, laneOf, type LaneView } from '../support/lane.ts'
import { runLength } from '../support/long-run.ts'
import { orderedEngine, type OrderedCall, type OrderedEngine } from '../support/ordered-engine.ts'
import { rawChat } from '../support/raw-client.ts'
import { eventually } from '../support/waiting.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

const CROWD = runLength(150, 2000)
const LANE = 8
const BUDGET = 12_000
/** A caller that leaves the queue is at least this far from its head, so that it is not admitted at the same instant. */
const FAR_FROM_HEAD = 3 * LANE

/** A caller with its own connection. */
interface Visitor {
  readonly name: string
  readonly content: string
  readonly maxTokens: number
  readonly stream: boolean
  readonly socket: Socket
  received: string
  left: 'no' | 'from the queue' | 'from the engine'
}

it('[Q1][Q2][Q5][Q8] a crowd on a lane of 8 is served in order and within the limits, and nothing is left over', async (t) => {
  const seed = simulationSeed()
  t.diagnostic(`WEIR_SEED=${seed}`)
  const random = seededRandom(seed)
  const violations: string[] = []
  const visitors: Visitor[] = []
  let arrived = 0

  const engine: OrderedEngine = await orderedEngine({
    // Keeps a queue to leave until the last caller has arrived, however slowly a busy machine lets them arrive.
    workMs: () => (arrived < CROWD && arrived - engine.calls.length < 10 * FAR_FROM_HEAD ? 100 : 2 + random() * 10),
    begun(call) {
      violations.push(...overLimits(engine.running))
      if (random() < 0.1) leaveEngine(call)
      if (random() < 0.15) leaveQueue()
    },
  })
  const limits = {
    token_budget: BUDGET,
    max_concurrent_requests: LANE,
    max_queue_depth: CROWD,
    max_wait_ms: 240_000,
  }
  const weir = await startWeir(stageConfig([engine.url], { limits }))
  t.after(async () => {
    for (const { socket } of visitors) socket.destroy()
    await weir.stop()
    await engine.close()
  })

  function leaveEngine({ content }: OrderedCall): void {
    const visitor = visitors[Number(nameIn(content))]
    if (visitor) leave(visitor, 'from the engine')
  }

  function leaveQueue(): void {
    const head = engine.calls.reduce((last, { content }) => Math.max(last, Number(nameIn(content))), 0)
    const first = head + FAR_FROM_HEAD
    const visitor = first < arrived ? visitors[first + Math.floor(random() * (arrived - first))] : undefined
    if (visitor) leave(visitor, 'from the queue')
  }

  for (let index = 0; index < CROWD; index++) visitors.push(await connectVisitor(weir, String(index), random))
  const status = new Client(new URL(weir.base).origin)
  for (const visitor of visitors) {
    await arrive(visitor, weir.key)
    arrived += 1
    // The answer proves that the service has read every socket that had data. The next caller has not sent anything yet, so
    // it arrives later: the test determines the order of arrival.
    violations.push(...wrongIn(await askStatus(status, weir)))
    if (random() < 0.2) leaveQueue()
  }
  await status.close()
  await eventually('every caller was served or has left', () => visitors.every(isOver), 120_000)
  await eventually('the lane is empty', async () => {
    const lane = await laneOf(weir)
    return lane.in_flight_requests === 0 && lane.queue_depth === 0 && lane.committed_tokens === 0
  })
  await nothingIsHeld(weir)

  const left = (how: Visitor['left']): number => visitors.filter((visitor) => visitor.left === how).length
  t.diagnostic(`${left('no')} served, ${left('from the queue')} left the queue, ${left('from the engine')} the engine`)
  assert.ok(left('from the queue') > CROWD / 40 && left('from the engine') > CROWD / 40)
  assert.deepEqual(violations, [])

  const expected = visitors.filter((visitor) => visitor.left !== 'from the queue')
  const calls = engine.calls.toSorted((one, other) => Number(nameIn(one.content)) - Number(nameIn(other.content)))
  assert.deepEqual(
    calls.map(({ content }) => nameIn(content)),
    expected.map(({ name }) => name),
  )
  assert.deepEqual(overtaken(calls), [])
  for (const visitor of visitors) if (visitor.left === 'no') requireAnswer(visitor)
  assert.equal(engine.running.size, 0)
  const rows = await weir.ledger()
  assert.equal(rows.length, expected.length)
  // An engine may have answered before the service noticed that the caller had left.
  const completed = rows.filter(({ outcome }) => outcome === 'completed').length
  assert.ok(completed >= left('no') && completed <= expected.length, `${completed} completed`)
})

async function connectVisitor(weir: TestWeir, name: string, random: () => number): Promise<Visitor> {
  const { hostname, port } = new URL(weir.base)
  const socket = connect(Number(port), hostname)
  const visitor: Visitor = {
    name,
    content: `${name}: ${'word '.repeat(Math.floor(random() ** 4 * 2000))}`,
    maxTokens: 1 + Math.floor(random() ** 2 * 4000),
    stream: random() < 0.5,
    socket,
    received: '',
    left: 'no',
  }
  socket.on('data', (chunk) => (visitor.received += chunk.toString('latin1')))
  socket.on('error', () => {})
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  return visitor
}

/** Resolves when the kernel has the whole request, which on loopback means that it is delivered. */
function arrive({ content, maxTokens, stream, socket }: Visitor, key: string): Promise<void> {
  const body = { messages: [{ role: 'user', content }], max_tokens: maxTokens, stream }
  return new Promise((resolve) => socket.write(rawChat(key, body, { Connection: 'close' }), () => resolve()))
}

function leave(visitor: Visitor, how: Visitor['left']): void {
  if (visitor.left !== 'no') return
  visitor.left = how
  visitor.socket.resetAndDestroy()
}

function isOver({ left, socket }: Visitor): boolean {
  return left !== 'no' || socket.closed
}

async function askStatus(client: Client, weir: TestWeir): Promise<LaneView | undefined> {
  const path = new URL(`${weir.base}/queue/status`).pathname
  const headers = { authorization: `Bearer ${weir.key}` }
  const { body } = await client.request({ method: 'GET', path, headers })
  return ((await body.json()) as { data: readonly LaneView[] }).data[0]
}

/** Violations of the limits that /queue/status shows. */
function wrongIn(lane: LaneView | undefined): string[] {
  const isRight =
    lane !== undefined &&
    lane.in_flight_requests <= LANE &&
    lane.committed_tokens <= BUDGET &&
    lane.available_budget === BUDGET - lane.committed_tokens
  return isRight ? [] : [`status: ${JSON.stringify(lane)}`]
}

/** Violations of the limits by the calls that run at the engine. */
function overLimits(running: ReadonlySet<OrderedCall>): string[] {
  const tokens = [...running].reduce((sum, { content, maxTokens }) => sum + chargeOf(content, maxTokens), 0)
  return running.size <= LANE && tokens <= BUDGET ? [] : [`engine: ${running.size} calls, ${tokens} tokens`]
}

/**
 * Calls that reached the engine after a call that arrived later. A call on a new connection may be late, because a leaving
 * caller closed the connection that was meant for it. Other calls may then overtake it, but it must not overtake any.
 */
function overtaken(callsByArrival: readonly OrderedCall[]): string[] {
  let latest = 0
  return callsByArrival.flatMap(({ turn, content, isFirstOnConnection }) => {
    const isEarly = turn < latest
    if (!isFirstOnConnection) latest = Math.max(latest, turn)
    return isEarly ? [`${nameIn(content)} in turn ${turn}, after one in turn ${latest}`] : []
  })
}

function requireAnswer({ name, stream, received }: Visitor): void {
  assert.match(received, /^HTTP\/1\.1 200 OK\r\n/, name)
  assert.match(received, /\r\nX-Queue-Wait-Ms: \d+\r\n/, name)
  assert.ok(received.includes(`"content":"${name}: `), `${name} got its own answer`)
  assert.ok(received.includes(stream ? 'data: [DONE]' : '"object":"chat.completion"'), `${name} got all of it`)
}

function nameIn(content: string): string {
  return content.slice(0, content.indexOf(':'))
}
