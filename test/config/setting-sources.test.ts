import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { settingSources } from '../../src/config/setting-sources.ts'

describe('where a setting has its value from', () => {
  const sourceOf = (environment: Record<string, string>, overrides: object = {}, content: object = {}) =>
    settingSources({
      environment,
      overrides,
      content,
      yaml: { placeOf: (path: string[]) => `line of ${path.join()}` } as never,
    })

  for (const [key, variable] of [
    ['server.host', 'WEIR_HOST'],
    ['server.port', 'WEIR_PORT'],
    ['server.admin_port', 'WEIR_ADMIN_PORT'],
    ['data_dir', 'WEIR_DATA_DIR'],
    ['database', 'WEIR_DATABASE_URL'],
    ['coordination', 'WEIR_REDIS_URL'],
    ['operator_token', 'WEIR_OPERATOR_TOKEN'],
    ['tracing.endpoint', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
    ['tracing.endpoint', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
    ['tracing.sample', 'OTEL_TRACES_SAMPLER'],
    ['metrics.endpoint', 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'],
    ['metrics.endpoint', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
  ] as const) {
    it(`is ${variable} for ${key}, if that is set`, () => {
      const content = { [key.split('.')[0] ?? '']: key.includes('.') ? { [key.split('.')[1] ?? '']: 1 } : 1 }
      assert.equal(sourceOf({ [variable]: 'x' }, {}, content)(key), variable)
      assert.equal(sourceOf({}, {}, content)(key), `line of ${key.replace('.', ',')}`)
      assert.equal(sourceOf({})(key), 'default')
    })
  }

  it('is an option before a variable, and a variable of OpenTelemetry only with a value, the more special one first', () => {
    const given = sourceOf({ WEIR_PORT: '1', WEIR_DATA_DIR: 'x' }, { port: '2', data: 'y' })
    assert.deepEqual(['server.port', 'data_dir'].map(given), ['--port', '--data'])
    const general = { OTEL_EXPORTER_OTLP_ENDPOINT: 'x' }
    const empty = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '',
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: '',
      OTEL_TRACES_SAMPLER: '',
    }
    const keys = ['tracing.endpoint', 'metrics.endpoint', 'tracing.sample']
    const name = 'OTEL_EXPORTER_OTLP_ENDPOINT'
    assert.deepEqual(keys.map(sourceOf({ ...general, ...empty })), [name, name, 'default'])
    const special = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'a', OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'b' }
    assert.deepEqual(keys.map(sourceOf({ ...general, ...special })).slice(0, 2), Object.keys(special))
  })
})
