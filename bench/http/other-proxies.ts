import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'

/**
 * Other proxies in front of the same engine: nginx, Caddy and HAProxy where they are installed, which forward bytes and
 * know nothing of keys or tokens. peers.ts starts other gateways in the same way.
 */
export interface OtherProxy {
  readonly name: string
  readonly pid: number
  readonly origin: string
  readonly path: string
  readonly headers: Record<string, string>
  stop(): Promise<void>
}

/** How to start one of them. */
export interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly environment?: Record<string, string>
  readonly path?: string
  readonly headers?: Record<string, string>
}

/** undefined: it is not installed. */
export type Programs = Readonly<Record<string, (place: Place) => Program | undefined>>

export interface Place {
  readonly folder: string
  readonly port: number
  readonly enginePort: number
}

/** LiteLLM takes half a minute on a busy machine. */
const READY_MS = 120_000
const STOP_MS = 5000

const proxies: Programs = { nginx, Caddy: caddy, HAProxy: haproxy }

/** They end with the bench at the latest. */
export async function otherProxies(enginePort: number, programs = proxies): Promise<readonly OtherProxy[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-proxies-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const started: OtherProxy[] = []
  for (const [name, programAt] of Object.entries(programs)) {
    const port = await freePort()
    const program = programAt({ folder, port, enginePort })
    const child = program && (await start(program, folder, port))
    if (!program || !child) {
      console.error(`${name} is not installed or did not start, so it is left out.`)
      continue
    }
    const { path = '/v1/chat/completions', headers = {} } = program
    const stop = (): Promise<void> => stopped(child)
    started.push({ name, pid: child.pid ?? 0, origin: `http://127.0.0.1:${port}`, path, headers, stop })
  }
  return started
}

async function start(
  { command, args, environment }: Program,
  folder: string,
  port: number,
): Promise<ChildProcess | undefined> {
  const child = spawn(command, args, { stdio: 'ignore', cwd: folder, env: { ...process.env, ...environment } })
  process.once('exit', () => child.kill())
  // The bench does not wait for it.
  child.unref()
  const state = { hasFailed: false }
  child.once('error', () => (state.hasFailed = true)).once('exit', () => (state.hasFailed = true))
  for (const until = performance.now() + READY_MS; performance.now() < until && !state.hasFailed; await sleep(50)) {
    if (await listens(port)) return child
  }
  child.kill()
  return undefined
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const over = once(child, 'exit')
  child.kill()
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await over
  clearTimeout(late)
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
