import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { freePort } from './free-port.ts'
import { OPERATOR_TOKEN } from './weir.ts'

/** A real Prometheus. */
export interface Prometheus {
  /** The `data` of an answer of its API; undefined while it cannot answer. */
  query(path: string): Promise<unknown>
  stop(): Promise<void>
}

/** Scrapes the operator listeners at these addresses every second, and evaluates the rules as often. */
export async function startPrometheus(adminUrls: readonly string[], rules: object = {}): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-prometheus-'))
  writeFileSync(join(folder, 'rules.yaml'), stringify(rules))
  writeFileSync(
    join(folder, 'prometheus.yaml'),
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: ['rules.yaml'],
      scrape_configs: [
        {
          job_name: 'weir',
          authorization: { credentials: OPERATOR_TOKEN },
          static_configs: [{ targets: adminUrls.map((url) => new URL(url).host) }],
        },
      ],
    }),
  )
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--enable-feature=exemplar-storage',
    ],
    { stdio: 'ignore' },
  )
  const ended = once(child, 'exit')
  return {
    async query(path) {
      const answered = await fetch(`http://${address}/api/v1/${path}`).catch(() => undefined)
      return answered?.ok ? ((await answered.json()) as { data: unknown }).data : undefined
    },
    async stop() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
