import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { answersWell } from '../../../src/engines/on-demand/engine-process.ts'
import { turn } from '../../support/hand-clock.ts'

it('an engine answers well with a status from 200 to 299, within two seconds unless it may take longer', async (t) => {
  const server = createServer(({ method, url = '' }, response) => {
    if (method === 'POST') response.writeHead(Number(url.slice(1))).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = (status: number) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${status}`
  const statuses = [200, 299, 300, 404, 503]
  const found = await Promise.all(statuses.map((status) => answersWell(url(status), 'POST')))
  assert.deepEqual(found, [true, true, false, false, false])
  const limits: number[] = []
  t.mock.method(AbortSignal, 'timeout', (ms: number) => (limits.push(ms), AbortSignal.abort()))
  assert.deepEqual([await answersWell(url(200), 'GET'), await answersWell(url(200), 'GET', 5)], [false, false])
  assert.deepEqual(limits, [2000, 5])
})

it('a probe reads its answer to the end, so that the next one has its connection', async (t) => {
  const server = createServer((_request, response) => response.end(Buffer.alloc(100_000))).listen(0, '127.0.0.1')
  let connections = 0
  server.on('connection', () => connections++)
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  assert.equal(await answersWell(url, 'GET'), true)
  await turn()
  assert.equal(await answersWell(url, 'GET'), true)
  assert.equal(connections, 1)
})
