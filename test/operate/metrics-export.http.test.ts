import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openMetricsExport } from '../../src/operate/telemetry/metrics-export.ts'
import { createMetrics, labels } from '../../src/operate/telemetry/metrics.ts'
import { chatStage } from '../support/chat-stage.ts'
import { turn } from '../support/hand-clock.ts'
import { scriptedServer } from '../support/scripted-server.ts'

interface Value {
  readonly key: string
  readonly value: { readonly stringValue: string }
}
interface Point {
  readonly startTimeUnixNano: string
  readonly timeUnixNano: string
  readonly attributes: readonly Value[]
  readonly asDouble?: number
  readonly count?: number
  readonly sum?: number
  readonly bucketCounts?: readonly number[]
  readonly explicitBounds?: readonly number[]
}
interface Metric {
  readonly name: string
  readonly unit: string
  readonly sum?: {
    readonly dataPoints: readonly Point[]
    readonly isMonotonic: boolean
    readonly aggregationTemporality: number
  }
  readonly gauge?: { readonly dataPoints: readonly Point[] }
  readonly histogram?: { readonly dataPoints: readonly Point[] }
}
interface Body {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly Value[] }
    readonly scopeMetrics: readonly { readonly metrics: readonly Metric[] }[]
  }[]
}

const objectOf = (values: readonly Value[]): Readonly<Record<string, string>> =>
  Object.fromEntries(values.map(({ key, value }) => [key, value.stringValue]))

async function collector(t: TestContext) {
  const server = await scriptedServer(t, () => ({}))
  const all = () =>
    server.asked.map(({ path, body }): readonly Metric[] => {
      assert.equal(path, '/v1/metrics')
      return (body as Body).resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((it) => it.metrics))
    })
  const latest = () => all().at(-1)!
  const resources = () =>
    server.asked.map(({ body }) => objectOf((body as Body).resourceMetrics[0]!.resource.attributes))
  return { url: server.url, asked: server.asked, all, latest, resources }
}

describe('metrics by OTLP', () => {
  it('are those of /metrics, by the names of the conventions', async (t) => {
    const collected = await collector(t)
    const { weir } = await chatStage(t, { config: { metrics: { endpoint: collected.url } } })
    await (await weir.chat({ stream: true })).text()
    const text = await (await weir.admin('GET', '/metrics')).text()
    await weir.stop()
    const metrics = new Map(collected.latest().map((it) => [it.name, it]))
    const requests = metrics.get('weir_requests_total')?.sum
    assert.equal(requests?.isMonotonic, true)
    assert.deepEqual(
      requests?.dataPoints.map(({ attributes, asDouble }) => [objectOf(attributes), asDouble]),
      [[{ status: '200' }, 1]],
    )
    assert.match(text, /^weir_requests_total\{status="200"\} 1$/m)
    assert.equal(metrics.get('weir_queue_depth')?.gauge?.dataPoints[0]?.asDouble, 0)
    const duration = metrics.get('gen_ai.server.request.duration')
    assert.equal(duration?.unit, 's')
    const [point] = duration?.histogram?.dataPoints ?? []
    assert.deepEqual(objectOf(point?.attributes ?? []), {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'meta/test-8b',
      'gen_ai.provider.name': 'openai',
    })
    const [, sum] = /^gen_ai_server_request_duration_seconds_sum\{.*\} (\S+)$/m.exec(text) ?? []
    assert.deepEqual([point?.count, point?.sum], [1, Number(sum)])
    assert.equal(point?.bucketCounts?.length, (point?.explicitBounds?.length ?? 0) + 1)
    const [resource = {}] = collected.resources()
    assert.equal(resource['service.name'], 'weir')
    assert.match(resource['service.instance.id'] ?? '', /-\d+-[0-9a-f]{8}$/)
  })

  it('have labels as they were, and name the process that they are of', async (t) => {
    const collected = await collector(t)
    const metrics = createMetrics()
    metrics.counter('weir_rejections_total').add(labels({ code: 'a"b\\n\nc', empty: '' }), 3)
    const histogram = metrics.histogram('weir_engine_seconds', [1, 2])
    for (const value of [1, 1.5, 9]) histogram.observe('', value)
    for (const instance of ['one', 'two']) {
      const parts = { version: '1', instance, read: async () => metrics.read(), failed: assert.fail }
      await openMetricsExport({ url: `${collected.url}/v1/metrics`, intervalMs: 60_000 }, parts).close()
    }
    assert.deepEqual(
      collected.resources().map((it) => it['service.instance.id']),
      ['one', 'two'],
    )
    const [rejections, seconds] = collected.latest()
    const [counted] = rejections?.sum?.dataPoints ?? []
    assert.deepEqual([objectOf(counted?.attributes ?? []), counted?.asDouble], [{ code: 'a"b\\n\nc' }, 3])
    const [point] = seconds?.histogram?.dataPoints ?? []
    assert.deepEqual([point?.bucketCounts, point?.count, point?.sum], [[1, 1, 1], 3, 11.5])
  })

  it('are sent at each interval', async (t) => {
    const collected = await collector(t)
    const read = async () => createMetrics().read()
    const given = { version: '1', instance: 'one', read }
    const arrived = Promise.withResolvers<void>()
    const sending = openMetricsExport(
      { url: `${collected.url}/v1/metrics`, intervalMs: 20 },
      { ...given, failed: assert.fail, read: async () => (collected.asked.length >= 2 ? (arrived.resolve(), []) : []) },
    )
    await arrived.promise
    await sending.close()
  })

  it('are sums since the start of the process', async (t) => {
    const collected = await collector(t)
    const metrics = createMetrics()
    const rejections = metrics.counter('weir_rejections_total')
    const startedAt = Date.now()
    let laterMs = 0
    t.mock.method(Date, 'now', () => startedAt + laterMs)
    const twice = Promise.withResolvers<void>()
    const sending = openMetricsExport(
      { url: `${collected.url}/v1/metrics`, intervalMs: 20 },
      {
        version: '1',
        instance: 'one',
        async read() {
          laterMs += 30_000
          rejections.add('', 1)
          if (laterMs === 60_000) twice.resolve()
          return metrics.read()
        },
        failed: assert.fail,
      },
    )
    await twice.promise
    await sending.close()
    const points = collected.all().map(([metric]) => {
      const [point] = metric!.sum!.dataPoints
      const times = [point!.startTimeUnixNano, point!.timeUnixNano].map(
        (it) => Math.round(Number(it) / 1e6) - startedAt,
      )
      return [metric!.sum!.aggregationTemporality, ...times, point!.asDouble]
    })
    const CUMULATIVE = 2
    assert.deepEqual(points.slice(0, 2), [
      [CUMULATIVE, 0, 30_000, 1],
      [CUMULATIVE, 0, 60_000, 2],
    ])
  })

  it('that a collector refuses are reported once a minute', async (t) => {
    const refusing = await scriptedServer(t, (_request, response) => void response.writeHead(400).end())
    let nowMs = performance.now()
    t.mock.method(performance, 'now', () => nowMs)
    const failures: string[] = []
    let reported = Promise.withResolvers<void>()
    const sending = openMetricsExport(
      { url: `${refusing.url}/v1/metrics`, intervalMs: 20 },
      {
        version: '1',
        instance: 'one',
        read: async () => [],
        failed(reason) {
          failures.push(reason)
          reported.resolve()
        },
      },
    )
    await reported.promise
    const sent = refusing.asked.length
    nowMs += 59_999
    while (refusing.asked.length < sent + 3) await turn()
    assert.equal(failures.length, 1)
    reported = Promise.withResolvers()
    nowMs += 1
    await reported.promise
    await sending.close()
    assert.equal(failures.length, 2)
  })
})
