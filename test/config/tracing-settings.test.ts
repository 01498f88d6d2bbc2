import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { metricsExportFrom, tracingFrom } from '../../src/config/tracing-settings.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'

const endpoint = 'http://collector:4318'
const usual = { url: `${endpoint}/v1/traces`, sampler: 'parentbased_traceidratio', share: 1 }

describe('where traces are sent', () => {
  it('is nowhere without an address', () => {
    assert.equal(tracingFrom(undefined, {}), undefined)
    assert.equal(tracingFrom({ sample: 0.5 }, {}), undefined)
  })

  it('is below the address in the file or in a variable, which wins', () => {
    assert.deepEqual(tracingFrom({ endpoint }, {}), usual)
    assert.deepEqual(tracingFrom({ endpoint: `${endpoint}/` }, {}), usual)
    assert.deepEqual(tracingFrom(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }), usual)
    const other = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://other:1/base' }
    assert.equal(tracingFrom({ endpoint }, other)?.url, 'http://other:1/base/v1/traces')
  })

  it('is exactly the address of the variable for traces', () => {
    const variables = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://traces:1/x', OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
    assert.equal(tracingFrom({ endpoint }, variables)?.url, 'http://traces:1/x')
  })

  it('is nowhere if a variable turns traces off', () => {
    for (const variables of [
      { OTEL_SDK_DISABLED: 'true' },
      { OTEL_SDK_DISABLED: 'TRUE' },
      { OTEL_TRACES_EXPORTER: 'none' },
      { OTEL_TRACES_EXPORTER: 'console' },
    ]) {
      assert.equal(tracingFrom({ endpoint }, variables), undefined)
    }
    for (const exporters of ['', 'otlp', 'console, otlp']) {
      assert.deepEqual(
        tracingFrom({ endpoint }, { OTEL_SDK_DISABLED: 'false', OTEL_TRACES_EXPORTER: exporters }),
        usual,
      )
    }
  })

  it('ignores variables that are empty', () => {
    const empty = {
      OTEL_EXPORTER_OTLP_ENDPOINT: '',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '',
      OTEL_TRACES_SAMPLER: '',
      OTEL_TRACES_SAMPLER_ARG: '',
    }
    assert.deepEqual(tracingFrom({ endpoint }, empty), usual)
    assert.equal(tracingFrom(undefined, empty), undefined)
    assert.equal(tracingFrom({ endpoint }, { ...empty, OTEL_TRACES_SAMPLER: 'traceidratio' })?.share, 1)
  })

  it('must be an address', () => {
    for (const wrong of ['collector', 'collector:4318'])
      assert.throws(
        () => tracingFrom(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: wrong }),
        new ConfigError('OTEL_EXPORTER_OTLP_ENDPOINT: must be an address such as http://127.0.0.1:4318'),
      )
  })
})

describe('which requests are traced', () => {
  it('is decided by the share in the file, or by the sampler in a variable', () => {
    assert.equal(tracingFrom({ endpoint, sample: 0.1 }, {})?.share, 0.1)
    const variables = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' }
    assert.deepEqual(tracingFrom({ endpoint, sample: 0.1 }, variables), {
      ...usual,
      sampler: 'traceidratio',
      share: 0.25,
    })
    assert.equal(tracingFrom({ endpoint, sample: 0.1 }, { OTEL_TRACES_SAMPLER: 'always_on' })?.share, 1)
  })

  it('is refused if the variables are wrong', () => {
    for (const argument of ['1.1', '-0.1', 'most']) {
      const variables = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: argument }
      assert.throws(() => tracingFrom({ endpoint }, variables), /OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1/)
    }
    assert.throws(
      () => tracingFrom({ endpoint }, { OTEL_TRACES_SAMPLER: 'some' }),
      /must be one of always_on, .*but is "some"/,
    )
  })
})

describe('where metrics are sent', () => {
  const usual = { url: 'http://collector:4318/v1/metrics', intervalMs: 60_000 }

  it('is nowhere unless an address is given, in the file or by a variable, which wins', () => {
    assert.equal(metricsExportFrom(undefined, {}), undefined)
    assert.deepEqual(metricsExportFrom({ endpoint: 'http://collector:4318/' }, {}), usual)
    const general = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }
    assert.deepEqual(metricsExportFrom({ endpoint: 'http://file:1' }, general), usual)
    const own = { ...general, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://metrics:1/x' }
    assert.equal(metricsExportFrom(undefined, own)?.url, 'http://metrics:1/x')
    const wrong = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'collector' }
    assert.throws(() => metricsExportFrom(undefined, wrong), /OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: must be an address/)
    const empty = { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: '' }
    assert.equal(metricsExportFrom(undefined, empty), undefined)
  })

  it('is nowhere if they are only scraped, or OpenTelemetry is disabled', () => {
    const section = { endpoint: 'http://collector:4318' }
    for (const variables of [
      { OTEL_SDK_DISABLED: 'true' },
      { OTEL_METRICS_EXPORTER: 'none' },
      { OTEL_METRICS_EXPORTER: 'prometheus' },
    ]) {
      assert.equal(metricsExportFrom(section, variables), undefined)
    }
    for (const exporters of ['', 'otlp', 'prometheus, otlp']) {
      assert.deepEqual(metricsExportFrom(section, { OTEL_METRICS_EXPORTER: exporters }), usual)
    }
  })

  it('takes the interval from its variable', () => {
    const section = { endpoint: 'http://collector:4318' }
    assert.equal(metricsExportFrom(section, { OTEL_METRIC_EXPORT_INTERVAL: '5000' })?.intervalMs, 5000)
    for (const interval of ['0', '-1', '1.5', 'often', '2147483648']) {
      assert.throws(
        () => metricsExportFrom(section, { OTEL_METRIC_EXPORT_INTERVAL: interval }),
        /OTEL_METRIC_EXPORT_INTERVAL: must be a number of milliseconds/,
      )
    }
  })
})
