import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { echoListener, type EchoListener } from '../support/echo-listener.ts'
import { freePort } from '../support/free-port.ts'
import { hostileRequests } from '../support/hostile-requests.ts'
import { rawClient } from '../support/raw-client.ts'
import { eventually } from '../support/waiting.ts'

/**
 * The hostile requests behind real proxies, which share one connection to the service among all callers. Each proxy stamps
 * every request that it forwards. A request without a stamp of its own was hidden from the proxy: it was smuggled. Each
 * proxy ends a request that does not go on within a second, so that every attack comes to its end.
 */
const proxies: Readonly<Record<string, (folder: string, port: number, servicePort: number) => readonly string[]>> = {
  nginx(folder, port, servicePort) {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (it) => `${it}_temp_path ${folder}/${it};`,
    )
    const file = join(folder, 'nginx.conf')
    writeFileSync(
      file,
      `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
       events { worker_connections 256; }
       http {
         access_log off; ${temporary.join(' ')}
         client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 1s; lingering_time 1s; lingering_timeout 1s;
         upstream service { server 127.0.0.1:${servicePort}; keepalive 1; }
         server {
           listen 127.0.0.1:${port};
           location / {
             proxy_pass http://service; proxy_http_version 1.1; proxy_request_buffering off;
             proxy_set_header Connection ""; proxy_set_header X-Stamp $request_id;
           }
         }
       }`,
    )
    return ['nginx', '-c', file]
  },
  caddy(folder, port, servicePort) {
    const file = join(folder, 'Caddyfile')
    writeFileSync(
      file,
      `{
         admin off
         auto_https off
         servers {
           timeouts {
             read_header 1s
             read_body 1s
             idle 1s
           }
         }
       }
       http://:${port} {
         bind 127.0.0.1
         reverse_proxy 127.0.0.1:${servicePort} {
           header_up X-Stamp {http.request.uuid}
           transport http {
             keepalive_idle_conns_per_host 1
           }
         }
       }
       `,
    )
    return ['caddy', 'run', '--config', file, '--adapter', 'caddyfile']
  },
  haproxy(folder, port, servicePort) {
    const file = join(folder, 'haproxy.cfg')
    writeFileSync(
      file,
      `global
         nbthread 1
       defaults
         mode http
         timeout connect 5s
         timeout client 1s
         timeout http-request 1s
         timeout http-keep-alive 1s
         timeout server 30s
         http-reuse always
       frontend callers
         bind 127.0.0.1:${port}
         http-request set-header X-Stamp %[uuid()]
         default_backend service
       backend service
         server service 127.0.0.1:${servicePort}\n`,
    )
    return ['haproxy', '-db', '-f', file]
  },
}

const NEXT = 'GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

async function startProxy(t: Pick<TestContext, 'after'>, name: string, servicePort: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-hostile-'))
  const port = await freePort()
  const [command = '', ...args] = proxies[name]?.(folder, port, servicePort) ?? []
  const child = spawn(command, args, { stdio: 'ignore', cwd: folder, env: { ...process.env, HOME: folder } })
  let failure: unknown
  child.once('error', (error) => (failure = error)).once('exit', (code) => (failure ??= `it ended with ${code}`))
  t.after(() => {
    child.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  await eventually(
    `${name} listens`,
    async () => {
      if (failure !== undefined) throw new Error(`${name} does not run`, { cause: failure })
      return fetch(`http://127.0.0.1:${port}/`)
        .then(({ status }) => status === 200)
        .catch(() => false)
    },
    60_000,
  )
  return port
}

for (const name of Object.keys(proxies)) {
  describe(`hostile requests behind ${name}`, () => {
    let echo: EchoListener
    let url = ''
    let victims = 0
    const ends: (() => unknown)[] = []
    const context = { after: (end: unknown) => void ends.unshift(end as () => unknown) }

    before(async () => {
      echo = await echoListener(context)
      url = `http://127.0.0.1:${await startProxy(context, name, echo.listener.address.port)}`
    })
    after(async () => {
      for (const end of ends) await end()
    })

    /** Another caller, who must get an answer to what it asked. */
    async function victim(): Promise<void> {
      const path = `/victim-${++victims}`
      const response = await fetch(`${url}${path}`)
      assert.deepEqual([response.status, await response.json()], [200, { asked: `GET ${path} ` }])
    }

    for (const { name, bytes } of hostileRequests) {
      it(`smuggle nothing, and do not change the answers of other callers: ${name}`, async () => {
        const from = echo.headers.length
        const attacker = await rawClient(url)
        const beside = victim()
        attacker.socket.write(bytes + NEXT, 'latin1')
        await Promise.all([beside, eventually('the attack is over', () => attacker.isClosed, 60_000)])
        for (let count = 0; count < 3; count++) await victim()
        const stamps = echo.headers.slice(from).map((headers) => headers['x-stamp'])
        for (const stamp of stamps) assert.match(stamp ?? 'none', /^[0-9a-f-]{32,36}$/)
        assert.equal(new Set(stamps).size, stamps.length, 'two requests have one stamp')
        assert.doesNotMatch(attacker.received, /victim/)
      })
    }
  })
}
