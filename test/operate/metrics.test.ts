import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { metricsRoute } from '../../src/operate/routes/metrics.ts'
import { createMetrics, labels } from '../../src/operate/telemetry/metrics.ts'
import { metricsFormat, metricsText } from '../../src/operate/telemetry/metrics-text.ts'
import { createTelemetry } from '../../src/operate/telemetry/telemetry.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { ask } from '../support/route-answer.ts'

describe('metrics in the Prometheus format', () => {
  it('escape quotes, backslashes and line ends in a label', () => {
    assert.equal(labels({ a: '"', b: '\\', c: '\n', d: 1 }), String.raw`{a="\"",b="\\",c="\n",d="1"}`)
    assert.equal(labels({}), '')
  })

  it('count a value in every bucket from its own upwards, the limits included', () => {
    const metrics = createMetrics()
    const histogram = metrics.histogram('weir_engine_seconds', [1, 2, 5])
    for (const value of [0.5, 1, 1.5, 5, 9]) histogram.observe('{model="x"}', value)
    assert.deepEqual(metricsText(metrics.read(), 'prometheus').split('\n').slice(2, -1), [
      'weir_engine_seconds_bucket{model="x",le="1"} 2',
      'weir_engine_seconds_bucket{model="x",le="2"} 3',
      'weir_engine_seconds_bucket{model="x",le="5"} 4',
      'weir_engine_seconds_bucket{model="x",le="+Inf"} 5',
      'weir_engine_seconds_sum{model="x"} 17',
      'weir_engine_seconds_count{model="x"} 5',
    ])
  })
})

describe('metrics in the OpenMetrics format', () => {
  it('have limits of buckets in the one form that each number has there', () => {
    const metrics = createMetrics()
    const limits = [0.005, 0.5, 1, 2.5, 262_144, 1_000_000, 1_048_576, 67_108_864]
    metrics.histogram('weir_engine_seconds', limits).observe('', 3)
    const text = metricsText(metrics.read(), 'openmetrics')
    assert.deepEqual(
      [...text.matchAll(/le="([^"]+)"/g)].map(([, limit]) => limit),
      ['0.005', '0.5', '1.0', '2.5', '262144.0', '1e+06', '1.048576e+06', '6.7108864e+07', '+Inf'],
    )
    assert.match(text, /weir_engine_seconds_sum 3\nweir_engine_seconds_count 1\n# EOF\n$/)
  })

  it('name their type, so that caches keep them apart from plain text', async () => {
    const routes = [metricsRoute({ metrics: async () => [{ name: 'weir_held_bytes', samples: [] }] })]
    for (const [accept, type] of [
      ['', 'text/plain; version=0.0.4'],
      ['application/openmetrics-text', 'application/openmetrics-text; version=1.0.0; charset=utf-8'],
    ] as const) {
      const { status, text, headers } = await ask(routes, 'GET /metrics', { headers: { accept } })
      assert.deepEqual([status, headers['Content-Type'], headers['Vary']], [200, type, 'Accept'])
      assert.equal(text.endsWith('# EOF\n'), accept !== '')
    }
  })

  it('are sent if the scraper accepts them, and does not prefer plain text', () => {
    const open = [
      'application/openmetrics-text',
      'application/openmetrics-text; version=1.0.0',
      'Application/OpenMetrics-Text; Version="1.0.0"; charset=utf-8',
      'text/plain, application/openmetrics-text',
      '*/*, application/openmetrics-text',
      'text/plain;q=0.9, application/openmetrics-text;q=0.9',
      // Prometheus 2.42 and 3.
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
    ]
    for (const accept of open) assert.equal(metricsFormat(accept), 'openmetrics', accept)
    const plain = [
      '',
      '*/*',
      'application/*',
      'text/plain',
      'text/html,application/xhtml+xml,*/*;q=0.8',
      'application/json',
      'application/openmetrics-text; version=0.0.1',
      'application/openmetrics-text; version=2.0.0',
      'application/openmetrics-text;q=0',
      'application/openmetrics-text;q=none',
      'application/openmetrics-text;q=0.5, text/plain',
      'application/openmetrics-text;q=0.5, text/*;q=0.6',
      'application/openmetrics-text;q=0.5, */*;q=0.6',
      'application/openmetrics-text;q=0.2, text/plain;version=0.0.4;q=0.3, */*;q=0.1',
    ]
    for (const accept of plain) assert.equal(metricsFormat(accept), 'prometheus', accept)
  })
})

describe('the metrics of a settled request', () => {
  it('are in seconds, as their names say', async (t) => {
    const telemetry = createTelemetry('silent', '1.2.3')
    t.after(() => telemetry.close())
    telemetry.settled(sampleRow('a', { model: 'm', lane: 'm', queueWaitMs: 250, firstTokenMs: 1500, durationMs: 4000 }))
    telemetry.settled(sampleRow('b', { model: 'm', lane: 'm', queueWaitMs: 250, firstTokenMs: null, durationMs: 4000 }))
    const text = metricsText(await telemetry.metrics(), 'prometheus')
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
