// npm run references: writes the pages of docs/reference from the tables that the service itself uses.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureInstalled, isRuntime, root, runAndExit } from './bootstrap.mjs'
import { errorHelp } from './error-help.mjs'

const isProgram = process.argv[1] === fileURLToPath(import.meta.url)
const code = (text) => `\`${text}\``
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ').replaceAll('\n', ' ')} |`).join('\n')

/** The pages by file name, before oxfmt aligns their tables. */
export async function referencePages() {
  return { 'errors.md': await errorsPage(), 'metrics.md': await metricsPage() }
}

async function errorsPage() {
  const { errorTable } = await import('../src/core/errors.ts')
  const rows = Object.entries(errorTable).map(([name, { status, type, retryAfter }]) => {
    const [cause, cure] = errorHelp[name]
    const retry = retryAfter === null ? '' : retryAfter === 'computed' ? 'yes' : `${retryAfter} s`
    return [String(status), code(name), code(type), retry, cause, cure]
  })
  return `# Error codes

Every error has the same body: \`{"error": {"message", "type", "param", "code"}}\`. \`code\` is for programs, \`message\`
for people. In a stream that has begun, the error is the last event.

${table(['Status', 'Code', 'Type', 'Retry-After', 'Cause', 'What to do'], rows)}
`
}

async function metricsPage() {
  const { metricTable } = await import('../src/telemetry/metric-table.ts')
  const rows = Object.entries(metricTable).map(([name, { type, labels, help }]) => [
    code(name),
    type,
    labels.map(code).join(', '),
    help,
  ])
  return `# Metrics

\`GET /metrics\` on the operator listener, with the operator token, in the text format of Prometheus. A histogram has
\`_bucket\`, \`_sum\` and \`_count\`. A lane is a queue: the model's id, and for reserved capacity the workspace as well.

${table(['Metric', 'Type', 'Labels', 'What it shows'], rows)}

## Alerts worth having

\`\`\`yaml
groups:
  - name: weir
    rules:
      - { alert: EngineDown, expr: weir_engine_up == 0, for: 1m }
      - { alert: LedgerStuck, expr: weir_ledger_healthy == 0 or weir_ledger_lag_seconds > 5, for: 1m }
      - { alert: RowsRefused, expr: weir_ledger_refused_rows > 0 }
      - { alert: QueueFull, expr: weir_queue_depth / weir_lane_max_queue_depth > 0.8, for: 5m }
      - { alert: SlowLoop, expr: weir_event_loop_delay_seconds > 0.25, for: 5m }
\`\`\`
`
}

if (isProgram) {
  ensureInstalled({ development: true })
  if (!isRuntime()) runAndExit([fileURLToPath(import.meta.url)])
  const pages = await referencePages()
  const files = Object.entries(pages).map(([name, text]) => {
    const file = join(root, 'docs', 'reference', name)
    writeFileSync(file, text)
    return file
  })
  spawnSync(join(root, 'node_modules', '.bin', 'oxfmt'), files, { stdio: 'inherit' })
}
