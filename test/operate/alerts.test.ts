import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { metricTable } from '../../src/operate/telemetry/metric-table.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const rulesFile = join(root, 'deploy/prometheus/rules.yaml')
const testFiles = ['rules', 'slow-burn'].map((name) => join(root, `test/fixtures/prometheus/${name}.test.yaml`))

interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
  readonly annotations?: { readonly runbook: string }
}
interface RuleTests {
  readonly tests: readonly {
    readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[]
  }[]
}
const { groups } = parse(readFileSync(rulesFile, 'utf8')) as { groups: readonly { rules: readonly Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)
const alerts = [...new Set(rules.flatMap(({ alert }) => alert ?? []))]

function promtool(...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
  assert.equal(status, 0, stdout + stderr)
}

describe('the alerts', () => {
  it('fire on what they are named for, and clear', () => {
    promtool('check', 'rules', rulesFile)
    promtool('test', 'rules', ...testFiles)
    const steps = testFiles
      .flatMap((file) => (parse(readFileSync(file, 'utf8')) as RuleTests).tests)
      .flatMap((it) => it.alert_rule_test)
    for (const alert of alerts) {
      const own = steps.filter(({ alertname }) => alertname === alert)
      assert.ok(
        own.some(({ exp_alerts: expected }) => expected.length > 0) && own.at(-1)?.exp_alerts.length === 0,
        alert,
      )
    }
  })

  it('have a runbook each, and every runbook an alert', () => {
    for (const { alert, annotations } of rules) {
      if (alert !== undefined) assert.equal(annotations?.runbook, `docs/runbooks/${alert}.md`)
    }
    assert.deepEqual(readdirSync(join(root, 'docs/runbooks')).toSorted(), alerts.map((it) => `${it}.md`).toSorted())
    for (const alert of alerts) {
      const headings = [...readFileSync(join(root, `docs/runbooks/${alert}.md`), 'utf8').matchAll(/^#+ (.+)$/gm)]
      assert.deepEqual(
        headings.map(([, text]) => text),
        [alert, 'What callers see', 'What to check', 'What to do'],
      )
    }
  })

  it('use metrics that exist', () => {
    for (const { expr } of rules) requireMetrics(expr)
  })
})

/** Every name in an expression that looks like a metric is one, or the record of a rule. */
function requireMetrics(expression: string): void {
  const names = expression.replaceAll(/"[^"]*"/g, '').match(/\b(?:weir|gen_ai|process)[_:][\w:]+/g) ?? []
  for (const name of names) {
    const isRecorded = rules.some(({ record }) => record === name)
    const isLabel = Object.values(metricTable).some(({ labels }) => labels.includes(name))
    assert.ok(isRecorded || isLabel || name.replace(/_(?:bucket|count|sum)$/, '') in metricTable, name)
  }
}

describe('the dashboards', () => {
  interface Dashboard {
    readonly uid: string
    readonly title: string
    readonly templating: { readonly list: readonly { readonly query: string }[] }
    readonly panels: readonly {
      readonly id: number
      readonly datasource: { readonly uid: string }
      readonly targets: readonly { readonly expr: string }[]
    }[]
  }
  const folder = join(root, 'deploy/grafana/dashboards')
  const dashboards = readdirSync(folder).map(
    (name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Dashboard,
  )
  const expressions = dashboards.flatMap(({ panels }) =>
    panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  )

  it('have ids of their own, and the data source that is provisioned', () => {
    assert.equal(new Set(dashboards.map(({ uid }) => uid)).size, 5)
    const { datasources } = parse(
      readFileSync(join(root, 'deploy/grafana/provisioning/datasources/prometheus.yaml'), 'utf8'),
    ) as { datasources: readonly { uid: string }[] }
    for (const { title, panels } of dashboards) {
      assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, title)
      for (const { datasource } of panels) assert.equal(datasource.uid, datasources[0]?.uid)
    }
  })

  it('show metrics that exist, by expressions that Prometheus accepts', (t) => {
    for (const expression of expressions) requireMetrics(expression)
    for (const { query } of dashboards.flatMap(({ templating }) => templating.list)) requireMetrics(query)
    // As rules, because this version of promtool checks no single expressions.
    const checked = expressions.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }))
    const directory = mkdtempSync(join(tmpdir(), 'weir-panels-'))
    t.after(() => rmSync(directory, { recursive: true }))
    const file = join(directory, 'panels.yaml')
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules: checked }] }))
    promtool('check', 'rules', file)
  })
})
