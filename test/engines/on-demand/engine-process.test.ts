import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startEngineProcess, untilGone } from '../../../src/engines/on-demand/engine-process.ts'
import { isGroupRunning, signalGroup } from '../../../src/engines/on-demand/process-group.ts'
import type { ProcessRecord } from '../../../src/engines/on-demand/process-record.ts'
import { eventually, within } from '../../support/waiting.ts'

const ENDS_MS = 20_000

/** A program as an engine, and a file for what it notes. */
function stage(t: TestContext, script: string, program = 'sh') {
  const folder = mkdtempSync(join(tmpdir(), 'weir-engine-'))
  const recordFile = join(folder, 'record')
  const notesFile = join(folder, 'notes')
  const printed: Buffer[] = []
  const engine = startEngineProcess({
    command: [program, '-c', script],
    env: { ...process.env, NOTES: notesFile },
    log: { write: (chunk) => void printed.push(chunk), lastLines: () => [], close() {} },
    recordFile,
  })
  t.after(async () => {
    signalGroup(engine.group, 'SIGKILL')
    await engine.ended
    rmSync(folder, { recursive: true })
  })
  return {
    ...engine,
    recordFile,
    ended: within(ENDS_MS, 'it ends', engine.ended),
    printed: () => Buffer.concat(printed).toString(),
    record: () => JSON.parse(readFileSync(recordFile, 'utf8')) as ProcessRecord,
    notes: (notes: string) =>
      eventually(`it notes ${notes}`, () => existsSync(notesFile) && readFileSync(notesFile, 'utf8') === notes),
  }
}

describe('the process of an engine', () => {
  it('is on record for as long as it runs, and keeps the service running no longer', async (t) => {
    const timers = (): number => process.getActiveResourcesInfo().filter((it) => it === 'Timeout').length
    const before = timers()
    const { ended, stop, recordFile } = stage(t, 'exec sleep 600')
    await eventually('it is on record', () => existsSync(recordFile))
    stop()
    assert.equal(await ended, 'was ended by SIGTERM')
    assert.ok(!existsSync(recordFile))
    assert.equal(timers(), before, 'the service does not wait any longer')
  })

  it('that ends at once leaves no record, and all that it printed is there', async (t) => {
    const { ended, recordFile, printed } = stage(t, 'seq 20000; echo that is all >&2; exit 3')
    assert.equal(await ended, 'ended with exit code 3')
    assert.ok(!existsSync(recordFile))
    assert.match(printed(), /^20000$/m)
    assert.match(printed(), /^that is all$/m)
  })

  it('whose program does not exist has ended, with the reason', async (t) => {
    const { ended, group } = stage(t, '', '/no/such/engine')
    assert.equal(await ended, 'could not be run: spawn /no/such/engine ENOENT')
    assert.equal(signalGroup(group, 0), false)
  })

  it('is killed if it has not ended ten seconds after it was asked to', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { ended, stop, notes } = stage(
      t,
      `trap 'printf x >> "$NOTES"' TERM; printf r > "$NOTES"; while :; do sleep 600 & wait; done`,
    )
    await notes('r')
    stop()
    t.mock.timers.tick(9999)
    await notes('rx')
    t.mock.timers.tick(1)
    assert.equal(await ended, 'ended')
  })

  it('that has ended in time is not killed later, however often it was asked to: another may have its number then', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { ended, stop, recordFile } = stage(t, 'exec sleep 600')
    await eventually('it runs', () => existsSync(recordFile))
    stop()
    stop()
    await ended
    const kill = t.mock.method(process, 'kill', () => true)
    t.mock.timers.tick(60_000)
    assert.deepEqual(kill.mock.calls, [])
    kill.mock.restore()
  })

  it('is killed as soon as its guardian is gone', async (t) => {
    // As long as the engine runs, it keeps its output open, and nothing is known to be over.
    const { ended, group, recordFile, record } = stage(t, 'sleep 600 & exec sleep 600')
    await eventually('it runs', () => existsSync(recordFile))
    process.kill(record().guardian.pid, 'SIGKILL')
    await eventually('the engine is gone', async () => !(await isGroupRunning(group)), 4000)
    await ended
    assert.ok(!existsSync(recordFile))
  })
})

describe('the guardian of an engine', () => {
  const program = fileURLToPath(new URL('../../../src/engines/on-demand/guardian.ts', import.meta.url))
  /** For a guardian, time passes a hundred times as fast. */
  const hasty = `data:text/javascript,const wait = setTimeout; globalThis.setTimeout = (then, ms) => wait(then, ms / 100)`

  /** A guardian without its service, which the test is. */
  async function guarded(t: TestContext, script: string, options: readonly string[] = []) {
    const folder = mkdtempSync(join(tmpdir(), 'weir-guardian-'))
    const notesFile = join(folder, 'notes')
    const notes = (): string => (existsSync(notesFile) ? readFileSync(notesFile, 'utf8') : '')
    const guardian = spawn(process.execPath, [...options, program], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
    })
    const gone = once(guardian, 'exit')
    t.after(async () => {
      signalGroup(guardian.pid!, 'SIGKILL')
      await gone
      rmSync(folder, { recursive: true })
    })
    guardian.stdin!.write(
      `${JSON.stringify({ command: ['sh', '-c', script], env: { ...process.env, NOTES: notesFile } })}\n`,
    )
    await eventually('the engine runs', () => notes().includes('ready'))
    return { guardian, notes, gone: within(ENDS_MS, 'the guardian ends', gone) }
  }

  it('asks it to end when the service is gone', async (t) => {
    const { guardian, notes, gone } = await guarded(
      t,
      `trap 'echo asked >> "$NOTES"; exit' TERM; echo ready > "$NOTES"; while :; do sleep 600 & wait; done`,
    )
    guardian.stdin!.destroy()
    await gone
    assert.equal(notes(), 'ready\nasked\n')
  })

  it('kills it five seconds later if it does not end, with all that it has started', async (t) => {
    const { guardian, gone } = await guarded(t, `trap '' TERM; sleep 600 & echo ready > "$NOTES"; wait`, [
      '--import',
      hasty,
    ])
    guardian.stdin!.destroy()
    assert.deepEqual(await gone, [null, 'SIGKILL'])
    await eventually('all are gone', async () => !(await isGroupRunning(guardian.pid!)))
  })
})

it('an engine that does not end after it was killed is reported once, and counts as there until it is gone', async () => {
  for (const [looks, expected] of [
    [0, 0],
    [49, 0],
    [50, 1],
    [1000, 1],
  ] as const) {
    let looked = 0
    let pauses = 0
    let reports = 0
    await untilGone(
      async () => looked++ < looks,
      () => reports++,
      async () => void pauses++,
    )
    assert.deepEqual([looked, pauses, reports], [looks + 1, looks, expected])
  }
})
