import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { isLongRun } from '../support/long-run.ts'
import { operationsOf, type ApiDocument } from '../support/openapi.ts'
import { rawClient } from '../support/raw-client.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

let weir: TestWeir

before(async () => (weir = await startWeir({ models: [], rate_limit: { requests_per_minute: 1_000_000 } })))
after(() => weir.stop())

/** The status of a request whose target is sent as it is. */
async function statusOf(url: string, target: string, token: string): Promise<number> {
  const client = await rawClient(url)
  client.send(
    `GET ${target} HTTP/1.1\r\nHost: weir.test\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  )
  await client.closed()
  return Number(/^HTTP\/1\.1 (\d+)/.exec(client.received)?.[1])
}

describe('a request target in absolute form', () => {
  it('is served like its path, whatever host it names', async () => {
    const { url } = weir.service
    for (const [target, status] of [
      [`${url}/api/v1/models`, 200],
      [`${url}/api/v1/models?category=llm`, 200],
      ['HTTPS://api.example.com:8443/api/v1/models', 200],
      ['http://user@host/api/v1/usage?limit=0', 400],
      ['http://host', 302],
      ['http://host?x=1', 302],
      ['http://host/api/v1/nothing', 404],
      ['http://host/http://host/api/v1/models', 404],
      ['ftp://host/api/v1/models', 404],
    ] as const) {
      assert.equal(await statusOf(url, target, weir.key), status, target)
    }
    assert.equal(await statusOf(weir.adminUrl, 'http://x/admin/v1/workspaces', weir.operatorToken), 200)
  })
})

describe('a query parameter', () => {
  const ODD_VALUES = [
    '',
    ' ',
    '0',
    '-1',
    '1e400',
    '9'.repeat(40),
    'NaN',
    '0x10',
    '1.5',
    'null',
    ',',
    '1,,2',
    '\u0000',
    '%',
    "'; DROP TABLE ledger; --",
    '-000001-01-01T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '0000-01-01',
    '0001-01-01T00:00:00Z',
    '9999-12-31',
    '9999-12-31T23:59:59Z',
    '+010000-01-01T00:00:00Z',
    '+275760-09-13T00:00:00Z',
    '+275760-09-13T00:00:00.001Z',
    '-271821-04-20T00:00:00Z',
    '2026-11-15T24:00:00Z',
    '2026-11-15T00:00:00+99:99',
    'x T00:00:00Z',
    '9007199254740993_a',
    '999999999999999_a',
  ]

  for (const listener of ['public', 'operator'] as const) {
    it(`never makes the ${listener} API fail, however odd its value`, async () => {
      const isPublic = listener === 'public'
      const get = (path: string): Promise<Response> => (isPublic ? weir.call(path) : weir.admin('GET', path))
      const document = (await (await get(isPublic ? '/openapi.json' : '/admin/v1/openapi.json')).json()) as ApiDocument
      let tried = 0
      let named = 0
      for (const [method, path, operation] of operationsOf(document)) {
        if (method !== 'get') continue
        const names = (operation.parameters ?? []).filter((it) => it.in === 'query').map((it) => it.name)
        const settings = names.includes('group_by') ? ['', 'group_by=day', 'group_by=model', 'format=csv'] : ['']
        for (const name of names) {
          // Each parameter gets another quarter of the values.
          named++
          for (const value of isLongRun ? ODD_VALUES : ODD_VALUES.filter((_, index) => (index + named) % 4 === 0)) {
            for (const setting of settings) {
              const query = new URLSearchParams(setting)
              if (names.includes('workspace')) query.set('workspace', 'default')
              query.set(name, value)
              const response = await get(`${path}?${query.toString()}`)
              await response.arrayBuffer()
              assert.ok(response.status < 500, `${path}?${query.toString()} gave ${response.status}`)
              tried++
            }
          }
        }
      }
      assert.ok(tried > 100, `only ${tried} requests`)
    })
  }
})
