import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { usageQuery } from '../../src/billing/usage/views.ts'
import { eachPage } from '../../src/billing/usage/usage-export.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { seededRandom } from '../../src/shared/seeded-random.ts'
import { openSettledStore } from '../../src/cli/settled-store.ts'
import { journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'
import type { DatabaseChoice } from '../../src/store/database-choice.ts'
import { stageConfig } from './chat-stage.ts'
import { collect, startCli, startNote } from './cli.ts'
import { scriptedEngine } from './scripted-engine.ts'
import { eventually } from './waiting.ts'
import { BUSY_MACHINE_MS } from './weir-process.ts'

/** Kills a service that is under load, again and again, and checks its books afterwards. */

export interface Received {
  readonly id: string
  readonly inputTokens: number
  readonly outputTokens: number
}

const CALLERS = 16

export async function killAgainAndAgain(rounds: number): Promise<{ received: number; interrupted: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-killed-'))
  const dataDir = join(folder, 'data')
  const engine = await scriptedEngine()
  const random = seededRandom(9)
  engine.script = () => ({
    tokens: ['a', 'b', 'c', 'd'],
    tokenMs: 15,
    promptTokens: 1 + Math.floor(random() * 1000),
    continuousUsage: true,
  })
  const configFile = join(folder, 'weir.yaml')
  writeFileSync(
    configFile,
    stringify({ ...stageConfig([engine.url], { limits: { max_concurrent_requests: 64 } }), log: { level: 'silent' } }),
  )
  const received: Received[] = []
  let key = ''
  let child: ChildProcess | undefined
  try {
    for (let round = 0; round < rounds; round++) {
      child = startCli(['serve', '--config', configFile, '--data', dataDir])
      const { api: base, firstKey } = await started(child)
      key = firstKey ?? key
      const before = received.length
      const load = { isOver: false }
      const callers = Array.from({ length: CALLERS }, async (_, index) => {
        while (!load.isOver)
          await requestOnce(base, key, index % 2 === 0).then(
            (it) => received.push(it),
            () => sleep(5),
          )
      })
      await eventually('answers come', () => received.length > before + CALLERS, BUSY_MACHINE_MS)
      await sleep(random() * 300)
      child.kill('SIGKILL')
      load.isOver = true
      await Promise.all(callers)
    }
    // A command sees every row at once. What was under way is settled by the next start.
    await check({ dataDir }, received)
    child = startCli(['serve', '--config', configFile, '--data', dataDir])
    await started(child)
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
    assert.deepEqual(readdirSync(journalFolder(dataDir)), [])
    return { received: received.length, interrupted: await check({ dataDir }, received) }
  } finally {
    child?.kill('SIGKILL')
    await engine.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function started({ stdout }: ReturnType<typeof startCli>): Promise<ReturnType<typeof startNote>> {
  const text = collect(stdout)
  await eventually('the service runs', () => text().endsWith('\n'), BUSY_MACHINE_MS)
  return startNote(text())
}

/** Resolves only when the last byte of the answer has arrived. */
export async function requestOnce(base: string, key: string, stream: boolean): Promise<Received> {
  const response = await fetch(`${base}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'meta/test-8b',
      messages: [{ role: 'user', content: 'Hi' }],
      ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
    }),
  })
  const text = await response.text()
  assert.equal(response.status, 200)
  if (stream) assert.ok(text.endsWith('data: [DONE]\n\n'))
  const json = stream ? (text.split('\n\n').at(-3) ?? '').slice('data: '.length) : text
  const { usage } = JSON.parse(json) as { usage: { prompt_tokens: number; completion_tokens: number } }
  return {
    id: response.headers.get('x-request-id') ?? '',
    inputTokens: usage.prompt_tokens,
    outputTokens: usage.completion_tokens,
  }
}

/** Every received answer has one row with the same figures, and the books fit. Returns how many requests were cut off. */
export async function check(books: DatabaseChoice, received: readonly Received[]): Promise<number> {
  const store = await openSettledStore(books)
  try {
    const workspaces = await store.workspaces()
    const rows = new Map<string, LedgerRow>()
    for await (const page of eachPage(store, usageQuery(workspaces[0]?.id ?? '', {}))) {
      for (const row of page) rows.set(row.requestId, row)
    }
    for (const { id, inputTokens, outputTokens } of received) {
      const row = rows.get(id) ?? assert.fail(`${id} was received and has no row`)
      assert.deepEqual([row.outcome, row.inputTokens, row.outputTokens], ['completed', inputTokens, outputTokens])
    }
    const proof = await reconcileLedger(store)
    assert.deepEqual(proof.problems, [])
    assert.equal(proof.rows, rows.size)
    const interrupted = [...rows.values()].filter(({ outcome }) => outcome === 'interrupted')
    assert.ok(interrupted.every(({ amount }) => amount === 0n))
    return interrupted.length
  } finally {
    await store.close()
  }
}
