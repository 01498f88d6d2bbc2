import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse } from 'yaml'
import type { DeliveryView } from '../../src/alerts/alerts.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { panelExpressions } from '../support/dashboards.ts'
import { freePort } from '../support/free-port.ts'
import { startPrometheus, type Prometheus } from '../support/prometheus.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { smallDisk, type SmallDisk } from '../support/small-disk.ts'
import { eventually, gate } from '../support/waiting.ts'
import { WEBHOOK_SECRET, webhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { OPERATOR_TOKEN, startWeir, type TestWeir } from '../support/weir.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

/**
 * The deployed rules in a real Prometheus that scrapes real services under load: each alert fires on a fault of the
 * service, and clears when the fault is gone. Only durations of the rules are shorter.
 */

/** The longest window has to pass, on a machine that may be busy. */
const PATIENCE_MS = 240_000
const GIB = 2 ** 30
const CALLERS = 4
const QUEUE_DEPTH = 16

const shorter: readonly (readonly [RegExp, string])[] = [
  [/\[5m\]/g, '[15s]'],
  [/\[1h\]/g, '[20s]'],
  [/\[6h\]/g, '[30s]'],
  [/(weir_journal_lag_seconds >) 300/g, '$1 5'],
  [/(weir_alert_oldest_undelivered_seconds\) >) 600/g, '$1 5'],
]

interface Rule {
  readonly alert?: string
  readonly expr: string
  readonly for?: string
  readonly labels?: { readonly severity: string }
}

function shortRules(): { readonly groups: readonly { readonly rules: readonly Rule[] }[] } {
  const file = new URL('../../deploy/prometheus/rules.yaml', import.meta.url)
  const { groups } = parse(readFileSync(file, 'utf8')) as ReturnType<typeof shortRules>
  const short = (rule: Rule): Rule => ({
    ...rule,
    expr: shorter.reduce((expr, [long, brief]) => expr.replaceAll(long, brief), rule.expr),
    ...(rule.for === undefined ? {} : { for: '1s' }),
  })
  return { groups: groups.map((group) => ({ ...group, rules: group.rules.map(short) })) }
}

describe('each deployed alert fires on a fault of a real service, and clears', () => {
  const disk: SmallDisk | undefined = smallDisk(8 * GIB)
  const tlsFolder = mkdtempSync(join(tmpdir(), 'weir-tls-'))
  const rules = shortRules()
  /** Alerts that were seen to fire, as `name severity`. */
  const fired = new Set<string>()
  let engine: ScriptedEngine
  let receiver: WebhookReceiver
  let weir: TestWeir
  let other: WeirProcess
  let prometheus: Prometheus
  let isLoaded = true
  let endLoad = async (): Promise<void> => {}

  /** A certificate for so many days. */
  function certify(days: number): void {
    const file = (name: string): string => join(tlsFolder, name)
    const subject = ['-subj', '/CN=weir.example.com', '-days', String(days), '-nodes', '-newkey', 'rsa:2048']
    execFileSync('openssl', ['req', '-x509', ...subject, '-keyout', file('new.key'), '-out', file('new.cert')], {
      stdio: 'ignore',
    })
    for (const part of ['key', 'cert']) copyFileSync(file(`new.${part}`), file(`used.${part}`))
  }

  before(async () => {
    engine = await scriptedEngine()
    engine.metrics = [
      'vllm:num_requests_running 1',
      'vllm:num_requests_waiting 0',
      'vllm:kv_cache_usage_perc 0.5',
      '',
    ].join('\n')
    receiver = await webhookReceiver()
    const hook = { name: 'hook', url: receiver.url, secret_env: 'HOOK', allow_private: true, events: ['key.created'] }
    weir = await startWeir(
      stageConfig([engine.url], {
        engine: { kind: 'vllm', health: { interval_ms: 1000 } },
        limits: { max_queue_depth: QUEUE_DEPTH, max_wait_ms: 600_000 },
        config: { alerts: { webhooks: [hook] } },
      }),
      { HOOK: WEBHOOK_SECRET },
      { disk: disk?.folder },
    )
    certify(365)
    const [port, adminPort] = [await freePort(), await freePort()]
    const tls = { cert: join(tlsFolder, 'used.cert'), key: join(tlsFolder, 'used.key') }
    other = await weirProcess(
      { server: { port, admin_port: adminPort, tls }, models: [] },
      { WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN },
    )
    prometheus = await startPrometheus([weir.adminUrl, other.adminUrl], rules)
    const over = new AbortController()
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!over.signal.aborted) {
        if (isLoaded) await (await weir.chat({ stream: true })).text()
        await sleep(100)
      }
    })
    endLoad = async () => {
      over.abort()
      await Promise.all(callers)
    }
    await eventually('the rules have figures', async () => (await ratio()) !== undefined, PATIENCE_MS)
    await quiet()
  })
  after(async () => {
    await endLoad()
    await prometheus?.stop()
    await other?.remove()
    await weir?.stop()
    await receiver?.stop()
    await engine?.close()
    await disk?.remove()
    rmSync(tlsFolder, { recursive: true })
  })

  async function ratio(): Promise<string | undefined> {
    const found = (await prometheus.query('query?query=weir:failures:ratio6h')) as
      | { readonly result: readonly { readonly value: readonly [number, string] }[] }
      | undefined
    return found?.result[0]?.value[1]
  }

  async function firing(): Promise<readonly string[]> {
    const found = (await prometheus.query('alerts')) as
      | { readonly alerts: readonly { readonly state: string; readonly labels: Readonly<Record<string, string>> }[] }
      | undefined
    assert.ok(found, 'Prometheus answers')
    return found.alerts
      .filter(({ state }) => state === 'firing')
      .map(({ labels }) => `${labels['alertname']} ${labels['severity']}`)
  }

  async function quiet(): Promise<void> {
    let last: readonly string[] = []
    const isQuiet = async (): Promise<boolean> => (last = await firing()).length === 0
    await eventually('no alert fires', isQuiet, PATIENCE_MS).catch((cause: unknown) => {
      throw new Error(`These alerts fire: ${last.join(', ')}`, { cause })
    })
  }

  /** From quiet to firing, by the fault, and back, by its repair. */
  async function seen(alerts: readonly string[], fault: () => unknown, repair: () => unknown): Promise<void> {
    await quiet()
    await fault()
    try {
      const isFiring = async (): Promise<boolean> => {
        const now = await firing()
        return alerts.every((it) => now.includes(it))
      }
      await eventually(`${alerts.join(' and ')} fires`, isFiring, PATIENCE_MS)
    } finally {
      await repair()
    }
    await quiet()
    for (const alert of alerts) fired.add(alert)
  }

  it('WeirDown: the service is killed', () =>
    seen(
      ['WeirDown page'],
      async () => {
        other.signal('SIGKILL')
        await other.ended()
      },
      () => other.start(),
    ))

  it('WeirEngineDown: the engine is not healthy', () =>
    seen(
      ['WeirEngineDown page'],
      () => {
        isLoaded = false
        engine.healthStatus = 500
      },
      () => {
        engine.healthStatus = 200
        isLoaded = true
      },
    ))

  it('WeirRequestsFail, both of them: the engine fails', () =>
    seen(
      ['WeirRequestsFail page', 'WeirRequestsFail ticket'],
      () => (engine.script = { refuse: { status: 500, body: {} } }),
      () => (engine.script = {}),
    ))

  it('WeirFirstTokensSlow, both of them: the engine is slow', () =>
    seen(
      ['WeirFirstTokensSlow page', 'WeirFirstTokensSlow ticket'],
      () => (engine.script = { firstByteMs: 5200 }),
      () => (engine.script = {}),
    ))

  it('WeirQueueSaturated: more requests wait than the engine serves', async () => {
    const go = gate()
    let waiting: readonly Promise<unknown>[] = []
    await seen(
      ['WeirQueueSaturated page'],
      () => {
        engine.script = { hold: { afterTokens: 0, until: go.opened } }
        waiting = Array.from({ length: 8 + QUEUE_DEPTH }, async () => (await weir.chat({})).text())
      },
      () => {
        engine.script = {}
        go.open()
      },
    )
    await Promise.all(waiting)
  })

  it('WeirJournalGrows: another program locks the database', () => {
    const database = new DatabaseSync(join(weir.dataDir, 'weir.db'), { timeout: 60_000 })
    return seen(
      ['WeirJournalGrows page'],
      () => database.exec('BEGIN IMMEDIATE'),
      () => {
        database.exec('ROLLBACK')
        database.close()
      },
    )
  })

  it('WeirAlertsUndelivered: the receiver of a webhook fails', () =>
    seen(
      ['WeirAlertsUndelivered ticket'],
      async () => {
        receiver.answer = { status: 500 }
        await weir.admin('POST', '/admin/v1/keys', { workspace: 'default' })
      },
      async () => {
        receiver.answer = { status: 204 }
        await eventually('nothing waits', async () => {
          const answer = await weir.admin('GET', '/admin/v1/alerts/deliveries?state=queued')
          const { data } = (await answer.json()) as { data: readonly DeliveryView[] }
          for (const { id } of data) await weir.admin('POST', `/admin/v1/alerts/deliveries/${id}/replay`)
          return data.length === 0
        })
      },
    ))

  it('WeirReconcileFails: a sum was changed in the database', () => {
    const change = async (by: number): Promise<void> => {
      const database = new DatabaseSync(join(weir.dataDir, 'weir.db'), { timeout: 60_000 })
      database.exec(`UPDATE usage_hours SET input_tokens = input_tokens + ${by}`)
      database.close()
      assert.equal((await weir.admin('GET', '/admin/v1/reconcile')).status, 200)
    }
    // The row of an hour that begins in between has a wrong sum, too.
    return seen(
      ['WeirReconcileFails ticket'],
      async () => {
        isLoaded = false
        await change(1)
      },
      async () => {
        await change(-1)
        isLoaded = true
      },
    )
  })

  it('WeirCertificateEnds: the certificate was not renewed in time', () =>
    seen(
      ['WeirCertificateEnds ticket'],
      () => certify(10),
      () => certify(365),
    ))

  const needsDisk = { skip: !disk && 'mounting a small disk needs root' }
  it('WeirDiskFills: less than a GiB is free', needsDisk, () =>
    seen(
      ['WeirDiskFills page'],
      () => disk!.resize(GIB / 2),
      () => disk!.resize(8 * GIB),
    ),
  )

  it('WeirLedgerLags: the disk is full', needsDisk, () => {
    const filler = join(disk!.folder, 'filler')
    return seen(
      ['WeirLedgerLags page'],
      () => {
        const { blocks, bavail, bsize } = statfsSync(disk!.folder)
        disk!.resize((blocks - bavail) * bsize + 4 * 2 ** 20)
        assert.throws(() => {
          for (;;) writeFileSync(filler, Buffer.alloc(4096), { flag: 'a' })
        }, /ENOSPC/)
      },
      () => {
        disk!.resize(8 * GIB)
        rmSync(filler)
      },
    )
  })

  it('is true of every rule', () => {
    const named = rules.groups.flatMap((group) => group.rules).filter(({ alert }) => alert !== undefined)
    const wanted = named.map(({ alert, labels }) => `${alert} ${labels?.severity}`)
    const withoutDisk = disk ? [] : ['WeirDiskFills page', 'WeirLedgerLags page']
    assert.deepEqual([...fired, ...withoutDisk].toSorted(), wanted.toSorted())
  })

  it('beside them, every panel of the dashboards has something to show', async () => {
    await weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '0.01', spend_limit_kind: 'soft' })
    engine.script = { tokens: Array.from({ length: 50 }, () => 'word '), promptTokens: 1_000_000 }
    await (await weir.chat({ max_tokens: 5 })).text()
    engine.script = {}
    for (const expression of panelExpressions('30s')) {
      const query = new URLSearchParams({ query: expression })
      const isShown = async (): Promise<boolean> => {
        const found = (await prometheus.query(`query?${query.toString()}`)) as
          | { result: readonly unknown[] }
          | undefined
        return found !== undefined && found.result.length > 0
      }
      await eventually(expression, isShown, PATIENCE_MS)
    }
  })
})
