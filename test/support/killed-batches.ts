import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type OpenAI from 'openai'
import { chatLine } from './batch-lines.ts'
import { linesIn, reached } from './batches.ts'
import { scriptedEngine, type ScriptedEngine } from './scripted-engine.ts'
import { eventually, gate } from './waiting.ts'
import { BUSY_MACHINE_MS, type WeirProcess } from './weir-process.ts'

/** Batches whose services are killed. */

/** Some of them are refused by the engine. */
export const linesToKill = (count: number): readonly object[] =>
  Array.from({ length: count }, (_, index) =>
    chatLine(`line-${index}`, index % 50 === 7 ? { messages: [{ role: 'user', content: 'refuse' }] } : {}),
  )

/** An engine that answers so many calls until it is allowed more. */
export async function meteredEngine(
  t: TestContext,
  first: number,
): Promise<ScriptedEngine & { allow(calls: number): void }> {
  const engine = await scriptedEngine()
  let calls = 0
  let allowed = first
  let more = gate()
  t.after(async () => {
    allow(Infinity)
    await engine.close()
  })
  const isStopped = (): boolean => allowed <= 0
  const turn = async (): Promise<void> => {
    while (isStopped()) await more.opened
    allowed--
  }
  function allow(count: number): void {
    allowed = count
    more.open()
    more = gate()
  }
  engine.script = ({ rawBody }) =>
    rawBody.includes('"refuse"')
      ? { refuse: { status: 400, body: { error: { message: 'no' } } } }
      : { tokens: ['a', 'b'], tokenMs: 5, promptTokens: 1 + (calls++ % 100), hold: { afterTokens: 0, until: turn() } }
  return Object.assign(engine, { allow })
}

/** Resolves when the engine answers no more, with lines waiting for it. */
export async function untilHeld(engine: ScriptedEngine): Promise<void> {
  await eventually(
    'lines wait',
    () => engine.calls.filter((it) => it.finished).length >= 20 && engine.running > 0,
    BUSY_MACHINE_MS,
  )
}

/** Every line ends once, and what is billed is what was delivered. Returns the rows of delivered answers that are missing. */
export async function checkBatch(
  client: OpenAI,
  id: string,
  lines: readonly object[],
  service: WeirProcess,
): Promise<number> {
  const batch = await reached(client, id, 'completed')
  const answers = await linesIn(client, batch.output_file_id)
  const failures = await linesIn(client, batch.error_file_id)
  assert.deepEqual(
    [...answers, ...failures].map((it) => it.custom_id).toSorted(),
    lines.map((it) => (it as { custom_id: string }).custom_id).toSorted(),
  )
  assert.equal(failures.length, lines.length / 50)
  assert.deepEqual(batch.request_counts, { total: lines.length, completed: answers.length, failed: failures.length })
  const rows = await service.ledger()
  const billed = new Map(rows.filter((it) => it.amount > 0n).map((it) => [it.requestId, it]))
  const lineOf = (requestId: string): string => requestId.split('-')[1] ?? ''
  const billedLines = [...billed.keys()].map(lineOf)
  assert.equal(new Set(billedLines).size, billedLines.length, 'a line was billed twice')
  let missing = 0
  for (const { response } of answers) {
    const row = billed.get(response?.request_id ?? '')
    if (!row) missing++
    else assert.equal(row.inputTokens, response?.body.usage.prompt_tokens)
    billed.delete(response?.request_id ?? '')
  }
  assert.deepEqual([...billed.keys()], [], 'billed without an answer')
  return missing
}
