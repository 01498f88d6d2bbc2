import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { dashboards, dashboardTexts, panelExpressions } from '../support/dashboards.ts'
import { unknownNames } from '../support/metric-expressions.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): unknown => parse(readFileSync(join(root, path), 'utf8'))

/** Below node_modules, so that a program finds the packages of the project. */
function folderFor(t: TestContext): string {
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'dashboards-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

function run(program: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  return status === 0 ? '' : stdout + stderr + String(error ?? '')
}

/** What the compiler finds wrong in a dashboard, by the types that Grafana publishes. */
function schemaErrors(t: TestContext, texts: readonly string[]): string {
  const folder = folderFor(t)
  const values = texts.map((text, index) => `export const dashboard${index}: TimeSeriesDashboard = ${text}`)
  const file = join(folder, 'dashboards.ts')
  writeFileSync(
    file,
    `import type { Dashboard, DataQuery, GraphFieldConfig, Panel } from '@grafana/schema'
interface PrometheusQuery extends DataQuery { expr: string; legendFormat: string }
interface TimeSeriesPanel extends Omit<Panel<Record<string, unknown>, GraphFieldConfig>, 'targets'> {
  type: 'timeseries'
  targets: PrometheusQuery[]
}
interface TimeSeriesDashboard extends Omit<Dashboard, 'panels'> { panels: TimeSeriesPanel[] }
${values.join('\n')}`,
  )
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig', '--module', 'nodenext', '--types', '']
  return run(join(root, 'node_modules/.bin/tsc'), ...options, file)
}

describe('the dashboards', () => {
  it("have the form of Grafana's schema", (t) => {
    assert.equal(schemaErrors(t, dashboardTexts), '')
    const [text = ''] = dashboardTexts
    const wrong = [
      text.replace('"gridPos"', '"gridPosition"'),
      text.replace('"schemaVersion": 39', '"schemaVersion": "39"'),
      text.replace('"refId"', '"ref"'),
    ]
    for (const it of wrong) assert.notEqual(it, text)
    const errors = schemaErrors(t, wrong)
    for (const name of ['gridPosition', 'string', 'ref']) assert.match(errors, new RegExp(`error.*'"?${name}"?'`))
  })

  it('have ids of their own, and the data source that is provisioned', () => {
    assert.equal(new Set(dashboards.map(({ uid }) => uid)).size, 5)
    const { datasources } = read('deploy/grafana/provisioning/datasources/prometheus.yaml') as {
      datasources: readonly { uid: string }[]
    }
    for (const { title, panels } of dashboards) {
      assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, title)
      for (const { datasource } of panels) assert.equal(datasource.uid, datasources[0]?.uid)
    }
  })

  it('show metrics and labels that exist', () => {
    const { groups } = read('deploy/prometheus/rules.yaml') as {
      groups: readonly { rules: readonly { record?: string }[] }[]
    }
    const records = groups.flatMap(({ rules }) => rules.flatMap(({ record }) => record ?? []))
    for (const { panels, templating } of dashboards) {
      for (const { expr, legendFormat } of panels.flatMap(({ targets }) => targets)) {
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!)
        assert.deepEqual(unknownNames(expr, { shown, records }), [], expr)
      }
      for (const { query } of templating.list) {
        const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? assert.fail(query)
        assert.deepEqual(unknownNames(metric, { shown: [label] }), [], query)
      }
    }
    assert.deepEqual(unknownNames('sum by (lane) (weir_queue_dept{lane="a"})'), ['weir_queue_dept', 'lane'])
    assert.deepEqual(unknownNames('sum by (lane) (weir_tokens_total{line="a"})', { shown: ['model'] }), [
      'line',
      'model',
    ])
    assert.deepEqual(unknownNames('weir_queue_wait_seconds{lane="a"}'), ['weir_queue_wait_seconds'], 'a histogram')
  })

  it('have expressions that Prometheus accepts', (t) => {
    // As rules, because this version of promtool checks no single expressions.
    const rules = panelExpressions('5m').map((expr, index) => ({ record: `panel:${index}`, expr }))
    const file = join(folderFor(t), 'panels.yaml')
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
    assert.equal(run('promtool', 'check', 'rules', file), '')
  })
})
