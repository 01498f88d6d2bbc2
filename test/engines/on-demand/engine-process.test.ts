import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { startEngineProcess, untilGone } from '../../../src/engines/on-demand/engine-process.ts'
import { eventually } from '../../support/waiting.ts'

it('the process of an engine is on record for as long as it runs', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-engine-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const recordFile = join(folder, 'record')
  const { ended, stop } = startEngineProcess({
    command: ['sleep', '600'],
    env: process.env,
    log: { write() {}, lastLines: () => [], close() {} },
    recordFile,
  })
  await eventually('it is on record', () => existsSync(recordFile))
  stop()
  assert.equal(await ended, 'was ended by SIGTERM')
  assert.ok(!existsSync(recordFile))
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
