import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { openIntents } from '../support/open-intents.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { eventually, within } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

interface Reconciliation {
  readonly fits: boolean
  readonly rows: number
  readonly problems: readonly { check: string; workspace: string; subject: string; message: string }[]
}

/** Runs SQL on the service's database, as another program would. */
function change(weir: WeirProcess, sql: string): void {
  const database = new DatabaseSync(join(weir.dataDir, 'weir.db'), { timeout: 5000 })
  database.exec(sql)
  database.close()
}

async function reconcile(weir: WeirProcess): Promise<{ code: number | null; result: Reconciliation; text: string }> {
  const command = ['reconcile', '--data', weir.dataDir]
  const [json, text] = await Promise.all([commandLine([...command, '--json']), commandLine(command)])
  assert.equal(text.code, json.code)
  return { code: json.code, result: JSON.parse(json.stdout) as Reconciliation, text: text.stdout }
}

async function metric(weir: WeirProcess, name: string): Promise<number> {
  const token = readFileSync(join(weir.dataDir, 'operator-token'), 'utf8').trim()
  const response = await fetch(`${weir.adminUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await response.text())?.[1])
}

describe('a row that the database refuses permanently', () => {
  it('is set aside, counted, logged and reported, delays no request, and is added when the cause is gone', async (t) => {
    const engine = await scriptedEngine()
    let calls = 0
    // Every seventh answer has seven tokens.
    engine.script = () => ({ tokens: ++calls % 7 === 0 ? Array<string>(7).fill('x') : ['a', 'b'] })
    const limits = { max_concurrent_requests: 50, max_queue_depth: 100, token_budget: 1_000_000 }
    const weir = await weirProcess(stageConfig([engine.url], { limits, config: { log: { level: 'warn' } } }))
    t.after(async () => {
      await weir.remove()
      await engine.close()
    })
    change(
      weir,
      `CREATE TRIGGER no_sevens BEFORE INSERT ON ledger WHEN NEW.output_tokens = 7
       BEGIN SELECT RAISE(ABORT, 'seven is refused'); END`,
    )
    const ask = async (stream: boolean): Promise<string> => {
      const response = await within(20_000, 'an answer', weir.chat({ stream }))
      const text = await within(20_000, 'its end', response.text())
      assert.equal(response.status, 200, text)
      assert.match(text, stream ? /\[DONE\]/ : /chat\.completion/)
      return response.headers.get('x-request-id') ?? ''
    }
    const ids = await Promise.all(Array.from({ length: 70 }, (_, index) => ask(index % 2 === 0)))
    ids.push(await ask(false))
    const written = new Set((await weir.ledger()).map(({ requestId }) => requestId))
    assert.equal(written.size, 61)
    const missing = ids.filter((id) => !written.has(id)).toSorted()
    assert.equal(missing.length, 10)

    assert.equal((await fetch(`${weir.adminUrl}/readyz`)).status, 200, 'a row says nothing about the store')
    assert.equal(await metric(weir, 'weir_ledger_refused_rows'), 10)
    const alarms = (): string[] =>
      weir
        .log()
        .split('\n')
        .filter((line) => line.includes('refused a ledger row'))
    await eventually('ten alarms', () => alarms().length === 10)
    for (const line of alarms()) {
      const { level, reason } = JSON.parse(line) as { level: number; reason: string }
      assert.deepEqual([level, reason], [50, 'seven is refused'])
    }
    const found = await reconcile(weir)
    assert.deepEqual([found.code, found.result.fits, found.result.rows], [1, false, 61])
    assert.deepEqual(found.result.problems.map(({ subject }) => subject).toSorted(), missing)
    const [problem] = found.result.problems
    assert.deepEqual([problem?.check, problem?.workspace], ['refused', 'default'])
    assert.match(problem?.message ?? '', /seven is refused/)
    assert.match(found.text, /refused: default/)

    // Neither a crash nor a restart loses them or settles them at nothing.
    weir.signal('SIGKILL')
    await weir.ended()
    await weir.start()
    assert.equal((await weir.ledger()).length, 61)
    assert.equal(await metric(weir, 'weir_ledger_refused_rows'), 10)
    await eventually('an alarm', () => /"rows":10[^\n]*still refuses/.test(weir.log()))
    assert.equal((await reconcile(weir)).code, 1)

    change(weir, 'DROP TRIGGER no_sevens')
    weir.signal('SIGTERM')
    assert.equal(await weir.ended(), 0)
    await weir.start()
    assert.deepEqual((await weir.ledger()).map(({ requestId }) => requestId).toSorted(), ids.toSorted())
    assert.equal(await metric(weir, 'weir_ledger_refused_rows'), 0)
    const mended = await reconcile(weir)
    assert.deepEqual([mended.code, mended.result.problems, mended.result.rows], [0, [], 71])
  })

  it('does not keep the service from starting when it belongs to a request that a crash interrupted', async (t) => {
    const engine = await scriptedEngine()
    engine.script = { handle: (_call, response) => new Promise((resolve) => response.once('close', resolve)) }
    const weir = await weirProcess(stageConfig([engine.url]))
    t.after(async () => {
      await weir.remove()
      await engine.close()
    })
    const cut = [100, 101, 102].map((tokens) => weir.chat({ max_tokens: tokens }).catch(() => 'cut'))
    await engine.arrived(3)
    await eventually('the journal has them', () => openIntents(weir.dataDir) === 3)
    weir.signal('SIGKILL')
    await Promise.all([weir.ended(), ...cut])
    change(
      weir,
      `CREATE TRIGGER no_101 BEFORE INSERT ON ledger WHEN NEW.max_tokens = 101
       BEGIN SELECT RAISE(ABORT, 'refused'); END`,
    )
    await weir.start()
    assert.deepEqual(new Set((await weir.ledger()).map(({ maxTokens }) => maxTokens)), new Set([100, 102]))
    assert.equal((await reconcile(weir)).result.problems.length, 1)
    assert.equal(await metric(weir, 'weir_ledger_refused_rows'), 1)
  })
})
