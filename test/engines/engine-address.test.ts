import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { openAddress, parseAddress, pathAt } from '../../src/engines/address.ts'
import { failureCounts } from '../../src/engines/failure-counts.ts'
import { noActivity, serverActivities } from '../../src/engines/server-activity.ts'

describe('the address of an engine', () => {
  const places: readonly (readonly [url: string, origin: string, prefix: string, socketPath?: string])[] = [
    ['http://engine:8000/v1', 'http://engine:8000', '/v1'],
    ['http://engine:8000/v1/', 'http://engine:8000', '/v1'],
    ['https://engine/a/b/', 'https://engine', '/a/b'],
    ['http://engine:8000', 'http://engine:8000', ''],
    ['http://engine:8000/', 'http://engine:8000', ''],
    ['unix:/run/engine.sock', 'http://localhost', '/v1', '/run/engine.sock'],
    ['unix:/run/engine.sock:/v2', 'http://localhost', '/v2', '/run/engine.sock'],
    ['unix:/run/engine.sock:/v2/', 'http://localhost', '/v2', '/run/engine.sock'],
    ['unix:/run/engine.sock:/', 'http://localhost', '', '/run/engine.sock'],
  ]
  for (const [url, origin, prefix, socketPath] of places) {
    it(`has a place and a path prefix: ${url}`, () => {
      const { socketPath: path, ...others } = parseAddress(url)
      assert.deepEqual([others, path], [{ origin, prefix }, socketPath])
    })
  }

  it('has operations below its prefix, and with two slashes at its root', () => {
    assert.equal(pathAt({ prefix: '/v1' }, '/models'), '/v1/models')
    assert.equal(pathAt({ prefix: '' }, '/models'), '/models')
    assert.equal(pathAt({ prefix: '/v1' }, '//health'), '/health')
  })

  it('sends queries below its prefix, with the given headers', async (t) => {
    const asked: unknown[] = []
    const server = createServer(({ method, url, headers }, response) => {
      asked.push([method, url, headers['x-weir']])
      response.end('ok')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`
    const drained = new Set<string>()
    const address = openAddress(url, 1000, serverActivities(), drained)
    t.after(async () => {
      await address.close()
      server.close()
    })
    assert.deepEqual([address.url, address.inFlight, address.healthy], [url, 0, true])
    const limits = { timeoutMs: 10_000, maxBytes: 10_000 }
    for (const path of ['/models', '//health']) {
      assert.deepEqual(await address.query(path, 'x-weir: 1\r\n', limits), { status: 200, isWhole: true, body: 'ok' })
    }
    assert.deepEqual(asked, [
      ['GET', '/v1/models', '1'],
      ['GET', '/health', '1'],
    ])
    assert.equal(address.isDrained(), false)
    drained.add(url)
    assert.equal(address.isDrained(), true)
  })
})

describe('the recorded activity of a server', () => {
  it('is empty at first, and is kept until its last address is removed', () => {
    const servers = serverActivities()
    const one = servers.join('a')
    const two = servers.join('a')
    assert.deepEqual(one.activity, { inFlight: 0, signsOfLife: 0, isInDoubt: false, loads: new Map() })
    assert.deepEqual(noActivity(), one.activity)
    one.activity.inFlight = 3
    one.leave()
    const three = servers.join('a')
    assert.deepEqual([two.activity, three.activity], [one.activity, one.activity])
    two.leave()
    assert.equal(servers.join('a').activity, three.activity)
    assert.notEqual(servers.join('b').activity, three.activity)
  })
})

describe('the failed calls of an address', () => {
  it('are counted, with the reason of the last one', () => {
    const counts = failureCounts()
    assert.deepEqual(counts.of('a'), { failures: 0, lastFailure: undefined })
    counts.add('a', 'reset')
    counts.add('b', 'refused')
    counts.add('a', 'status 500')
    assert.deepEqual(counts.of('a'), { failures: 2, lastFailure: 'status 500' })
    assert.deepEqual(counts.of('b'), { failures: 1, lastFailure: 'refused' })
  })

  it('are forgotten for the address that failed longest ago, when there are more than 10,000', () => {
    const counts = failureCounts()
    for (let address = 0; address < 10_000; address++) counts.add(`${address}`, 'x')
    assert.equal(counts.of('0').failures, 1)
    counts.add('0', 'again')
    counts.add('one more', 'x')
    assert.deepEqual(
      ['0', '1', '2', '9999', 'one more'].map((url) => counts.of(url).failures),
      [2, 0, 1, 1, 1],
    )
  })
})
