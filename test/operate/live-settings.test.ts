import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Config } from '../../src/config.ts'
import { liveSettings } from '../../src/operate/reload/live-settings.ts'

function config(perMinute: number, port: number, drainMs = 1000): Config {
  const setting = (key: string, value: number) => ({ key, value, source: 'weir.yaml:1' })
  return {
    requestsPerMinute: perMinute,
    unauthenticatedPerMinute: perMinute + 1,
    drainMs,
    maxBodyBytes: port,
    settings: [
      setting('rate_limit.requests_per_minute', perMinute),
      setting('server.drain_ms', drainMs),
      setting('server.port', port),
    ],
  } as unknown as Config
}

describe('the settings that a running service applies', () => {
  it('take effect at once, and the others after a restart', () => {
    const settings = liveSettings(config(10, 80))
    assert.deepEqual(settings.pending(config(20, 81, 2000)), [
      { key: 'rate_limit.requests_per_minute', value: 20, needs: 'reload' },
      { key: 'server.drain_ms', value: 2000, needs: 'reload' },
      { key: 'server.port', value: 81, needs: 'restart' },
    ])
    assert.deepEqual(settings.take(config(20, 81, 2000)), ['rate_limit.requests_per_minute', 'server.drain_ms'])
    assert.deepEqual(
      [settings.requestsPerMinute, settings.unauthenticatedPerMinute, settings.drainMs, settings.maxBodyBytes],
      [20, 21, 2000, 80],
    )
    const values = () => Object.fromEntries(settings.inForce().map(({ key, value }) => [key, value]))
    assert.deepEqual(values(), { 'rate_limit.requests_per_minute': 20, 'server.drain_ms': 2000, 'server.port': 80 })
    assert.deepEqual(settings.take(config(30, 81, 2000)), ['rate_limit.requests_per_minute'])
    assert.deepEqual(settings.pending(config(30, 80, 2000)), [])
    assert.deepEqual(
      settings.pending(config(30, 81, 2000)).map(({ key, needs }) => [key, needs]),
      [['server.port', 'restart']],
    )
  })
})
