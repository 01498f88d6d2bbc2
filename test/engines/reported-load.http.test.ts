import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { modelEntry, startWeir } from '../support/weir.ts'

it('the load that a server reports is in the list of engines and in the metrics, and is asked for once', async (t) => {
  let asked = 0
  const server = createServer((request, response) => {
    if (request.url === '/metrics') asked++
    const isAllowed = request.headers.authorization === 'Bearer engine-secret'
    response.statusCode = request.url === '/metrics' && isAllowed ? 200 : 404
    response.end('vllm:num_requests_running{model_name="m"} 7\nvllm:num_requests_waiting{model_name="m"} 3\n')
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  t.after(() => server.close())
  const engine = { kind: 'vllm', urls: [url], api_key_env: 'ENGINE_KEY' }
  const weir = await startWeir({
    models: ['meta/test-8b', 'meta/other'].map((id) => modelEntry([url], { id, aliases: [], serverless: { engine } })),
  })
  t.after(() => weir.stop())
  const { data } = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
    data: { addresses: { reported: object | null }[] }[]
  }
  assert.deepEqual(data[0]?.addresses[0]?.reported, { running: 7, waiting: 3, cache_use: null })
  assert.deepEqual(data[1]?.addresses[0]?.reported, data[0]?.addresses[0]?.reported)
  assert.equal(asked, 1)
  const metrics = await (await weir.admin('GET', '/metrics')).text()
  assert.match(metrics, /weir_engine_reported_running\{lane="meta\/test-8b",address="http:[^"]+"\} 7\n/)
  assert.match(metrics, /weir_engine_reported_waiting\{lane="meta\/test-8b",address="http:[^"]+"\} 3\n/)
  assert.doesNotMatch(metrics, /^weir_engine_reported_cache_use\{/m)
})
