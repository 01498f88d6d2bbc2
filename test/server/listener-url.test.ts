import assert from 'node:assert/strict'
import { it } from 'node:test'
import { urlOf } from '../../src/server/server.ts'

it('the URL of a listener has brackets around an IPv6 address', () => {
  const url = (host: string): string => urlOf({ scheme: 'https', address: { host, port: 8080 } })
  assert.deepEqual([url('::1'), url('127.0.0.1')], ['https://[::1]:8080', 'https://127.0.0.1:8080'])
})
