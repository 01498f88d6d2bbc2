import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { serviceDirectories, workerDirectory } from '../../src/cluster/workers/directories.ts'
import { metricsOfAll } from '../../src/operate/telemetry/metrics-of-workers.ts'

function dataWith(t: TestContext, ...names: readonly string[]): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-directories-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  for (const name of names) mkdirSync(join(dataDir, name))
  return dataDir
}

describe('the directories of workers', () => {
  it('follow the data directory, in the order of their numbers', (t) => {
    const dataDir = dataWith(t, 'worker-10', 'worker-2', 'worker-1', 'worker-x', 'worker-3x', 'my-worker-4', 'models')
    assert.deepEqual(serviceDirectories(dataDir), [
      dataDir,
      ...[1, 2, 10].map((number) => join(dataDir, `worker-${number}`)),
    ])
    assert.equal(workerDirectory(dataDir, 10), join(dataDir, 'worker-10'))
  })

  it('are none if there is no data directory', () => {
    assert.deepEqual(serviceDirectories('/nowhere/at/all'), [])
  })
})

describe('the metrics of all workers', () => {
  const own = { metrics: async () => '# TYPE weir_x gauge\nweir_x 1\n' }

  it('are those of the process itself if it is alone', async (t) => {
    assert.equal(await metricsOfAll({ worker: undefined, sharedDir: dataWith(t) }, own), await own.metrics())
  })

  it('include its own with its number, and omit a worker that does not answer', async (t) => {
    const sharedDir = dataWith(t, 'worker-1', 'worker-12')
    const text = await metricsOfAll({ worker: 12, sharedDir }, own)
    assert.match(text, /^weir_x\{worker="12"\} 1$/m)
    assert.doesNotMatch(text, /worker="1"/)
  })
})
