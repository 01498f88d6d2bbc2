import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { unknownNames } from '../support/metric-expressions.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const rulesFile = join(root, 'deploy/prometheus/rules.yaml')
const testFiles = ['rules', 'slow-burn'].map((name) => join(root, `test/fixtures/prometheus/${name}.test.yaml`))

interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
  readonly annotations?: { readonly runbook: string; readonly summary: string }
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

  it('use metrics and labels that exist', () => {
    const records = rules.flatMap(({ record }) => record ?? [])
    for (const { expr, annotations } of rules) {
      const shown = [...(annotations?.summary ?? '').matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!)
      assert.deepEqual(unknownNames(expr, { shown, records }), [], expr)
    }
  })
})
