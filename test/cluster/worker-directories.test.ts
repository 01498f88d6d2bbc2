import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { serviceDirectories, workerDirectory } from '../../src/cluster/workers/directories.ts'
import type { MetricFamily } from '../../src/operate/telemetry/metrics.ts'
import { metricsText } from '../../src/operate/telemetry/metrics-text.ts'
import { scriptedService } from '../support/scripted-service.ts'
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
  const exemplars = { 1: { traceId: 'a', value: 3, at: 5 } }
  const distribution = { buckets: [2], counts: [0, 1], sum: 3, exemplars }
  const families = (count: number): readonly MetricFamily[] => [
    { name: 'weir_requests_total', samples: [{ label: '{status="200"}', value: count }] },
    { name: 'weir_held_bytes', samples: [{ label: '', value: 7 }] },
    { name: 'weir_engine_seconds', samples: [{ label: '{model="m"}', value: distribution }] },
  ]
  const own = { metrics: async () => families(1) }

  it('are those of the process itself if it is alone', async (t) => {
    assert.deepEqual(await metricsOfAll({ worker: undefined, sharedDir: dataWith(t) }, own), families(1))
  })

  it('include its own with its number, and omit a worker that does not answer', async (t) => {
    const sharedDir = dataWith(t, 'worker-1', 'worker-12')
    assert.deepEqual(await metricsOfAll({ worker: 12, sharedDir }, own), [
      { name: 'weir_requests_total', samples: [{ label: '{worker="12",status="200"}', value: 1 }] },
      { name: 'weir_held_bytes', samples: [{ label: '{worker="12"}', value: 7 }] },
      { name: 'weir_engine_seconds', samples: [{ label: '{worker="12",model="m"}', value: distribution }] },
    ])
  })

  it('are one family for all of them, with the exemplars of each', async (t) => {
    const sharedDir = dataWith(t, 'worker-1', 'worker-2')
    const more: MetricFamily = { name: 'weir_replicas', samples: [{ label: '', value: 2 }] }
    await scriptedService(t, workerDirectory(sharedDir, 2), { metrics: async () => [...families(2), more] })
    const merged = await metricsOfAll({ worker: 1, sharedDir }, own)
    assert.equal(
      metricsText(merged, 'openmetrics'),
      [
        '# HELP weir_requests Responses by status',
        '# TYPE weir_requests counter',
        'weir_requests_total{worker="1",status="200"} 1',
        'weir_requests_total{worker="2",status="200"} 2',
        '# HELP weir_held_bytes Memory for bodies and for answers that were not read yet',
        '# TYPE weir_held_bytes gauge',
        'weir_held_bytes{worker="1"} 7',
        'weir_held_bytes{worker="2"} 7',
        '# HELP weir_engine_seconds Time from admission to settlement',
        '# TYPE weir_engine_seconds histogram',
        ...['1', '2'].flatMap((worker) => [
          `weir_engine_seconds_bucket{worker="${worker}",model="m",le="2.0"} 0`,
          `weir_engine_seconds_bucket{worker="${worker}",model="m",le="+Inf"} 1 # {trace_id="a"} 3 0.005`,
          `weir_engine_seconds_sum{worker="${worker}",model="m"} 3`,
          `weir_engine_seconds_count{worker="${worker}",model="m"} 1`,
        ]),
        '# HELP weir_replicas Replicas, when Redis last answered',
        '# TYPE weir_replicas gauge',
        'weir_replicas{worker="2"} 2',
        '# EOF',
        '',
      ].join('\n'),
    )
  })
})
