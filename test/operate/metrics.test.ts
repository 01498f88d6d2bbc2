import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createMetrics, labels } from '../../src/operate/telemetry/metrics.ts'
import { createTelemetry } from '../../src/operate/telemetry/telemetry.ts'
import { sampleRow } from '../support/ledger-samples.ts'

describe('metrics in the Prometheus format', () => {
  it('escape quotes, backslashes and line ends in a label', () => {
    assert.equal(labels({ a: '"', b: '\\', c: '\n', d: 1 }), String.raw`{a="\"",b="\\",c="\n",d="1"}`)
    assert.equal(labels({}), '')
  })

  it('count a value in every bucket from its own upwards, the limits included', () => {
    const metrics = createMetrics()
    const histogram = metrics.histogram('weir_engine_seconds', [1, 2, 5])
    for (const value of [0.5, 1, 1.5, 5, 9]) histogram.observe('{model="x"}', value)
    assert.deepEqual(metrics.text().split('\n').slice(2, -1), [
      'weir_engine_seconds_bucket{model="x",le="1"} 2',
      'weir_engine_seconds_bucket{model="x",le="2"} 3',
      'weir_engine_seconds_bucket{model="x",le="5"} 4',
      'weir_engine_seconds_bucket{model="x",le="+Inf"} 5',
      'weir_engine_seconds_sum{model="x"} 17',
      'weir_engine_seconds_count{model="x"} 5',
    ])
  })
})

describe('the metrics of a settled request', () => {
  it('are in seconds, as their names say', async (t) => {
    const telemetry = createTelemetry('silent', '1.2.3')
    t.after(() => telemetry.close())
    telemetry.settled(sampleRow('a', { model: 'm', lane: 'm', queueWaitMs: 250, firstTokenMs: 1500, durationMs: 4000 }))
    telemetry.settled(sampleRow('b', { model: 'm', lane: 'm', queueWaitMs: 250, firstTokenMs: null, durationMs: 4000 }))
    const text = await telemetry.metrics()
    for (const line of [
      'weir_queue_wait_seconds_sum{model="m",lane="m"} 0.5',
      'weir_first_token_seconds_sum{model="m",lane="m"} 1.5',
      'weir_first_token_seconds_count{model="m",lane="m"} 1',
      'weir_engine_seconds_sum{model="m",lane="m"} 8',
    ]) {
      assert.ok(text.includes(`${line}\n`), line)
    }
  })
})
