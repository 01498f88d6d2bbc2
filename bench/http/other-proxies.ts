import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/postgres-server.ts'

/**
 * Other proxies in front of the same engine: nginx, Caddy and HAProxy where they are installed, which forward bytes and
 * know nothing of keys or tokens; and Portkey, another gateway for models, from the registry. It is no dependency of
 * Weir: it is installed into a cache the first time.
 */
export interface OtherProxy {
  readonly name: string
  readonly pid: number
  readonly origin: string
  readonly path: string
  readonly headers: Record<string, string>
}

/** How to start one of them. */
interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly environment?: Record<string, string>
  readonly path?: string
  readonly headers?: Record<string, string>
}

interface Place {
  readonly folder: string
  readonly port: number
  readonly enginePort: number
}

const PORTKEY = '@portkey-ai/gateway@1.15.2'
const CACHE = new URL('../../node_modules/.cache/portkey/', import.meta.url).pathname
const READY_MS = 20_000

/** undefined: it is not installed. */
const programs: Readonly<Record<string, (place: Place) => Program | undefined>> = {
  nginx,
  Caddy: caddy,
  HAProxy: haproxy,
  Portkey: portkey,
}

/** They end with the bench. */
export async function otherProxies(enginePort: number): Promise<readonly OtherProxy[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-proxies-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const started: OtherProxy[] = []
  for (const [name, programAt] of Object.entries(programs)) {
    const port = await freePort()
    const program = programAt({ folder, port, enginePort })
    const pid = program && (await start(program, folder, port))
    if (!program || pid === undefined) {
      console.log(`${name} is not installed or did not start, so it is left out.`)
      continue
    }
    const { path = '/v1/chat/completions', headers = {} } = program
    started.push({ name, pid, origin: `http://127.0.0.1:${port}`, path, headers })
  }
  return started
}

async function start(
  { command, args, environment }: Program,
  folder: string,
  port: number,
): Promise<number | undefined> {
  const child = spawn(command, args, { stdio: 'ignore', cwd: folder, env: { ...process.env, ...environment } })
  process.once('exit', () => child.kill())
  // The bench does not wait for it.
  child.unref()
  const state = { hasFailed: false }
  child.once('error', () => (state.hasFailed = true)).once('exit', () => (state.hasFailed = true))
  for (const until = performance.now() + READY_MS; performance.now() < until && !state.hasFailed; await sleep(50)) {
    if (await listens(port)) return child.pid
  }
  child.kill()
  return undefined
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.unref().on('connect', () => socket.destroy())
  })
}

function isInstalled(command: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' }).status === 0
}

/** In one process, because that is what is measured. */
function nginx({ folder, port, enginePort }: Place): Program | undefined {
  if (!isInstalled('nginx')) return undefined
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((it) => `${it}_temp_path ${folder}/${it};`)
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
     events { worker_connections 8192; }
     http {
       access_log off; keepalive_requests 100000000; client_body_buffer_size 128k; ${temporary.join(' ')}
       upstream engine { server 127.0.0.1:${enginePort}; keepalive 512; keepalive_requests 100000000; }
       server {
         listen 127.0.0.1:${port};
         location / { proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
       }
     }`,
  )
  return { command: 'nginx', args: ['-c', file] }
}

function caddy({ folder, port, enginePort }: Place): Program | undefined {
  if (!isInstalled('caddy')) return undefined
  const file = join(folder, 'Caddyfile')
  writeFileSync(
    file,
    `{
       admin off
       auto_https off
     }
     http://127.0.0.1:${port} {
       reverse_proxy 127.0.0.1:${enginePort} {
         flush_interval -1
         transport http {
           keepalive_idle_conns_per_host 512
         }
       }
     }
     `,
  )
  return { command: 'caddy', args: ['run', '--config', file, '--adapter', 'caddyfile'], environment: { HOME: folder } }
}

function haproxy({ folder, port, enginePort }: Place): Program | undefined {
  if (!isInstalled('haproxy')) return undefined
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `global
       nbthread 1
     defaults
       mode http
       timeout connect 5s
       timeout client 120s
       timeout server 120s
     frontend callers
       bind 127.0.0.1:${port}
       default_backend engine
     backend engine
       server engine 127.0.0.1:${enginePort}\n`,
  )
  return { command: 'haproxy', args: ['-db', '-f', file] }
}

function portkey({ port, enginePort }: Place): Program | undefined {
  const program = join(CACHE, 'node_modules/@portkey-ai/gateway/build/start-server.js')
  if (!existsSync(program)) {
    console.log(`Installing ${PORTKEY} into ${CACHE} …`)
    mkdirSync(CACHE, { recursive: true })
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    spawnSync('npm', ['install', '--prefix', CACHE, ...flags, PORTKEY], { stdio: ['ignore', 2, 2] })
    if (!existsSync(program)) return undefined
  }
  return {
    command: process.execPath,
    args: [program, `--port=${port}`, '--headless'],
    headers: {
      authorization: 'Bearer none',
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${enginePort}/v1`,
    },
  }
}
