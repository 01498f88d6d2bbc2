import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatStage } from '../support/chat-stage.ts'
import { startPrometheus } from '../support/prometheus.ts'
import { eventually } from '../support/waiting.ts'

/** A busy machine may starve Prometheus for a while. */
const PATIENCE_MS = 120_000

interface Exemplars {
  readonly exemplars: readonly { readonly labels: { readonly trace_id: string } }[]
}

describe('Prometheus beside the service', () => {
  it('finds the trace of a request by an exemplar of its duration', async (t) => {
    const { weir } = await chatStage(t, { config: { tracing: { endpoint: 'http://127.0.0.1:9' } } })
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
    const headers = { 'content-type': 'application/json', traceparent: `00-${trace}-00f067aa0ba902b7-01` }
    await (await weir.chat({ stream: true }, { headers })).text()
    const prometheus = await startPrometheus([weir.adminUrl])
    t.after(() => prometheus.stop())
    for (const name of [
      'weir_first_token_seconds',
      'weir_engine_seconds',
      'gen_ai_server_request_duration_seconds',
      'gen_ai_server_time_to_first_token_seconds',
    ]) {
      const query = new URLSearchParams({ query: `${name}_bucket`, start: '0', end: String(Date.now() / 1000 + 3600) })
      const tracesOf = async (): Promise<readonly string[]> => {
        const found = (await prometheus.query(`query_exemplars?${query.toString()}`)) as
          | readonly Exemplars[]
          | undefined
        return (found ?? []).flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels.trace_id))
      }
      await eventually(`${name} has an exemplar`, async () => (await tracesOf()).length > 0, PATIENCE_MS)
      assert.deepEqual(await tracesOf(), [trace], name)
    }
  })
})
