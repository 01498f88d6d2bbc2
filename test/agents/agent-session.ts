import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { ChatStage } from '../support/chat-stage.ts'
import type { EngineCallSeen, Script, ToolCall } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import {
  agentHome,
  agentStage,
  recorder,
  startAgent,
  type AgentHome,
  type AgentName,
  type Recorder,
  type RunningAgent,
} from './agent-process.ts'
import { keepDeed } from './kept-deeds.ts'
import { keepRequests } from './kept-requests.ts'

/** How one agent is set up and started, and what its tools are called. */
export interface Agent {
  readonly name: AgentName
  /** Writes its configuration, for the service at this address. */
  configure(home: AgentHome, origin: string): void
  args(prompt: string): readonly string[]
  variables(origin: string, key: string): Readonly<Record<string, string>>
  /** The calls of its tools that show greeting.txt, and change hello to goodbye in it. */
  calls(home: AgentHome): readonly [show: ToolCall, change: ToolCall]
  /** What it says when the conversation does not fit into the context. */
  readonly tooLong?: RegExp
}

export interface Session extends ChatStage {
  readonly home: AgentHome
  readonly proxy: Recorder
  readonly agent: RunningAgent
}

export const PROMPT = 'Change hello to goodbye in greeting.txt.'

/** The conversation that an agent works on. It may have others, for a title. */
export function isWork(call: EngineCallSeen): boolean {
  return Array.isArray(call.body['tools'])
}

export async function session(
  t: TestContext,
  agent: Agent,
  script: (home: AgentHome) => (call: EngineCallSeen) => Script,
  model: object = {},
): Promise<Session> {
  const home = agentHome(t)
  home.write('work/greeting.txt', 'hello\n')
  const stage = await agentStage(t, script(home), model)
  const proxy = await recorder(t, stage.weir.service.url)
  agent.configure(home, proxy.url)
  const running = startAgent(t, agent.name, agent.args(PROMPT), home, agent.variables(proxy.url, stage.weir.key))
  return { ...stage, home, proxy, agent: running }
}

/** A session of several turns: the agent looks at a file, changes it, and says so. */
export async function editsFile(t: TestContext, agent: Agent): Promise<void> {
  const {
    engine,
    weir,
    home,
    proxy,
    agent: running,
  } = await session(t, agent, (place) => (call) => {
    if (!isWork(call)) return { tokens: ['A', ' title'] }
    const results = messagesOf(call).filter(({ role }) => role === 'tool').length
    const [show, change] = agent.calls(place)
    if (results === 0) return { reasoning: ['I look', ' first.'], tokens: ['Looking.'], toolCalls: [show] }
    return results === 1 ? { toolCalls: [change] } : { tokens: ['It says', ' goodbye', ' now.'] }
  })
  const code = await running.over
  assert.equal(code, 0, running.output())
  assert.match(running.output(), /It says goodbye now\./)
  assert.equal(readFileSync(join(home.work, 'greeting.txt'), 'utf8'), 'goodbye\n')
  const work = engine.calls.filter(isWork)
  assert.equal(work.length, 3)
  requireStableStarts(work)
  await eventually('every request is settled', async () => (await weir.ledger()).length === engine.calls.length)
  const rows = await weir.ledger()
  for (const row of rows) assert.equal(row.outcome, 'completed')
  // Each token of the script is one delta.
  const produced = engine.calls.reduce((sum, call) => sum + call.tokensProduced, 0)
  assert.equal(
    rows.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
    produced,
  )
  keepRequests(agent.name, proxy.seen, home)
  const tools = [...new Set(agent.calls(home).map((call) => call.name))]
  keepDeed(agent.name, 'edited', { calls: work.length, tools })
}

/** An interruption in the middle of an answer: the engine stops, and what was streamed is billed, exactly. */
export async function isInterrupted(t: TestContext, agent: Agent): Promise<void> {
  const tokens = ['One', ' two', ' three', ' four', ' five']
  const never = new Promise<void>(() => {})
  const {
    engine,
    weir,
    proxy,
    agent: running,
  } = await session(
    t,
    agent,
    () => (call) => (isWork(call) ? { tokens, hold: { afterTokens: 3, until: never } } : { tokens: ['A title'] }),
  )
  const held = () => proxy.seen.find(({ answer }) => answer.includes(' three'))
  await eventually('the third token has come', () => held() !== undefined, 120_000)
  running.interrupt()
  await engine.left(1)
  const stoppedAt = performance.now()
  const leftAt = held()?.leftAt
  assert.ok(leftAt !== undefined, 'the agent closed its connection')
  t.diagnostic(`the engine stopped ${Math.round(stoppedAt - leftAt)} ms after the agent had left`)
  assert.ok(stoppedAt - leftAt < 5000, `${stoppedAt - leftAt} ms`)
  await eventually('it is settled', async () => (await weir.ledger()).some(({ outcome }) => outcome === 'caller_left'))
  const rows = (await weir.ledger()).filter(({ outcome }) => outcome === 'caller_left')
  assert.deepEqual(
    rows.map(({ outputTokens }) => outputTokens),
    [3],
  )
  await running.over
  const engineStoppedMs = Math.max(1, Math.round(stoppedAt - leftAt))
  keepDeed(agent.name, 'interrupted', { engineStoppedMs, billedTokens: rows[0]?.outputTokens ?? 0 })
}

/** A conversation that does not fit: the agent understands why. */
export async function learnsOfFullContext(t: TestContext, agent: Agent): Promise<void> {
  const { engine, agent: running } = await session(t, agent, () => () => ({}), {
    context_length: 3000,
    max_completion_tokens: 1000,
    default_max_tokens: 1000,
  })
  await eventually('the agent says so', () => agent.tooLong?.test(running.output()) ?? true, 120_000)
  assert.equal(engine.calls.filter(isWork).length, 0)
  keepDeed(agent.name, 'fullContext', { said: agent.tooLong?.exec(running.output())?.[0] ?? '' })
}

interface Message {
  readonly role: string
}

function messagesOf({ body }: EngineCallSeen): readonly Message[] {
  return body['messages'] as Message[]
}

/** Each prompt starts with everything of the one before, so that the engine's cache is warm. */
function requireStableStarts(calls: readonly EngineCallSeen[]): void {
  for (const [number, call] of calls.entries()) {
    const before = calls[number - 1]
    if (!before) continue
    assert.deepEqual(call.body['tools'], before.body['tools'])
    assert.deepEqual(messagesOf(call).slice(0, messagesOf(before).length), messagesOf(before))
  }
}
