import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { findService } from '../../src/operate/running-service.ts'
import { isServiceRunning } from '../../src/store/sqlite/service-lock.ts'
import { cli, collect, startCli, startNote } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { inLongRun } from '../support/long-run.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { hasTerminals, onTerminal, plain } from '../support/terminal.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

interface Stage {
  readonly folder: string
  readonly config: string
  readonly options: readonly string[]
}

async function stage(t: TestContext): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-start-'))
  const engine = await scriptedEngine()
  t.after(async () => {
    await engine.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const config = join(folder, 'weir.yaml')
  const server = { port: 0, admin_port: 0, drain_ms: 0 }
  writeFileSync(config, stringify({ server, models: [modelEntry([engine.url])] }))
  return { folder, config, options: ['--config', config] }
}

describe('weir serve, whose output goes to a pipe', () => {
  /** Starts it, stops it once it runs, and returns what it wrote. */
  async function run({ options }: Stage): Promise<{ stdout: string; stderr: string; code: number | null }> {
    const child = startCli(['serve', ...options])
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    await eventually('it runs or ends', () => stdout().endsWith('\n') || child.exitCode !== null, 30_000)
    child.kill('SIGTERM')
    return { code: await ended, stdout: stdout(), stderr: stderr() }
  }

  it('writes JSON only, and the first key to a file that only its owner can read', async (t) => {
    const it = await stage(t)
    const first = await run(it)
    assert.equal(first.code, 0, first.stderr)
    const started = JSON.parse(first.stdout) as Record<string, unknown>
    assert.equal(first.stdout.trimEnd().split('\n').length, 1)
    assert.deepEqual(Object.keys(started), [
      'level',
      'time',
      'url',
      'api',
      'docs',
      'console',
      'operator',
      'data_dir',
      'models',
      'first_api_key_file',
      'msg',
    ])
    assert.deepEqual([started['msg'], started['models']], ['Weir is running', 1])
    const file = join(it.folder, 'data', 'first-api-key')
    assert.equal(started['first_api_key_file'], file)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const { firstKey = '' } = startNote(first.stdout)
    assert.match(firstKey, /^weir_\w{49}$/)
    assert.equal(readFileSync(file, 'utf8'), `${firstKey}\n`)
    for (const line of first.stderr.trim().split('\n')) assert.equal(typeof JSON.parse(line), 'object', line)

    const second = await run(it)
    assert.equal((JSON.parse(second.stdout) as Record<string, unknown>)['first_api_key_file'], undefined)
    for (const { stdout, stderr } of [first, second]) assert.ok(!(stdout + stderr).includes(firstKey))
  })
})

describe('weir serve on a terminal', { skip: !hasTerminals && 'there is no script command' }, () => {
  it('shows an overview, the first key once, and a short line for each request', async (t) => {
    const it = await stage(t)
    const first = onTerminal(['serve', ...it.options])
    await eventually('it runs', () => first.lines().some((line) => line.includes(`}'`)), 30_000)
    const text = plain(first.received())
    const [, url = ''] = /API +(\S+)\/api\/v1/.exec(text) ?? assert.fail(text)
    const [key = ''] = /weir_\w{49}/.exec(text) ?? assert.fail(text)
    const [, operator = ''] = /Operator +(\S+)/.exec(text) ?? assert.fail(text)
    const [, link = ''] = /Console +(\S+)/.exec(text) ?? assert.fail(text)
    for (const it of [link, operator]) assert.match(it, /^http:\/\/127\.0\.0\.1:\d+\/console#link=[\w-]{22}$/)
    assert.equal(
      text.trim(),
      `
  Weir is running. Ctrl-C stops it.

  Console   ${link}
  API       ${url}/api/v1
  Docs      ${url}/docs
  Operator  ${operator}
  Token     operator-token in the data directory
  Data      ${join(it.folder, 'data')}
  Models    1

  The links sign in to the consoles, each once, within 30 minutes.

  Your first API key (it is not shown again):
    ${key}

  Try it:
    curl ${url}/api/v1/chat/completions \\
      --oauth2-bearer ${key} \\
      -H "Content-Type: application/json" -d '{
        "model": "meta/test-8b",
        "temperature": 0, "max_tokens": 40,
        "messages": [{"role": "user", "content": "Name the capital of France."}]
      }'`.trim(),
    )
    for (const line of first.lines()) assert.ok(line.length <= 80 || line.includes(it.folder), `too wide: ${line}`)
    assert.ok(first.received().includes('\u001B[1m'), 'in colour')

    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const messages = [{ role: 'user', content: 'Hi' }]
    const body = JSON.stringify({ model: 'test-8b', messages })
    await (await fetch(`${url}/api/v1/chat/completions`, { method: 'POST', headers, body })).text()
    await (await fetch(`${url}/api/v1/models`)).text()
    const logged = /\d\d:\d\d:\d\d 200 \/chat\/completions meta\/test-8b \d+ in, \d+ out [\d.]+ m?s default\n/
    await eventually('requests are logged', () => logged.test(plain(first.received())), 30_000)
    await eventually('refusals too', () => / 401 \/models missing_api_key\n/.test(plain(first.received())), 30_000)
    assert.doesNotMatch(first.received(), /"level"/, 'no JSON')
    first.interrupt()
    assert.equal(await first.ended, 0, first.received())
  })

  it('reloads on SIGHUP, and stops in order when the terminal is closed, which sends SIGHUP too', async (t) => {
    const { folder, options } = await stage(t)
    const run = onTerminal(['serve', ...options])
    await eventually('it runs', () => run.lines().some((line) => line.includes(`}'`)), 30_000)
    const data = join(folder, 'data')
    const service = findService(data) ?? assert.fail('nothing runs')
    let isRunning = true
    t.after(() => isRunning && process.kill(service.pid, 'SIGKILL'))
    process.kill(service.pid, 'SIGHUP')
    await eventually('it has reloaded', () => run.received().includes('catalog reloaded'), 30_000)
    run.close()
    await run.ended
    // Its lock is what it gives back last.
    await eventually('it has stopped', () => !(isRunning = isServiceRunning(data)), 30_000)
    assert.deepEqual(readdirSync(join(data, 'journal')), [], 'in order: nothing is left to recover')
  })

  it('shows on a second start how to create a key, and uses no colour with NO_COLOR', inLongRun, async (t) => {
    const it = await stage(t)
    await commandLine(['workspaces', 'create', 'default', '--json', ...it.options])
    const run = onTerminal(['serve', ...it.options], { NO_COLOR: '1' })
    await eventually('it runs', () => run.lines().some((line) => line.includes(`}'`)), 30_000)
    const text = run.received().replaceAll('\r', '')
    assert.ok(
      text.includes(`\n  Make an API key with:\n    npx weir keys create --workspace default --config ${it.config}\n`),
      text,
    )
    assert.ok(!text.includes('\u001B'), 'no colour')
    assert.doesNotMatch(text, /weir_\w{49}/)
    run.interrupt()
    assert.equal(await run.ended, 0)
  })
})

describe('a port that is in use', () => {
  it('is reported with the setting that chose it, and what to do', async (t) => {
    const it = await stage(t)
    const holder = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => holder.once('listening', resolve))
    t.after(() => holder.close())
    const { port } = holder.address() as AddressInfo
    const inUse = (source: string, choices: string): string =>
      `weir: port ${port} on 127.0.0.1 is in use (the port comes from ${source}); stop the program that uses it, or choose another port with ${choices}\n`
    const ports = '--port N, WEIR_PORT or server.port'
    const serve = async (environment: NodeJS.ProcessEnv, ...flags: string[]): Promise<string> => {
      const result = await commandLine(['serve', ...it.options, ...flags], { environment })
      assert.equal(result.code, 1)
      return result.stderr
    }
    assert.equal(await serve({}, '--port', String(port)), inUse('--port', ports))
    assert.equal(await serve({ WEIR_PORT: String(port) }), inUse('WEIR_PORT, server.port', ports))
    writeFileSync(it.config, `server:\n  admin_port: 0\n  port: ${port}\nmodels: []\n`)
    assert.equal(await serve({}), inUse(`${it.config}:3, server.port`, ports))
    writeFileSync(it.config, `server:\n  port: 0\n  admin_port: ${port}\nmodels: []\n`)
    const adminPorts = 'WEIR_ADMIN_PORT or server.admin_port'
    assert.equal(await serve({}), inUse(`${it.config}:3, server.admin_port`, adminPorts))
  })
})

describe('weir --version', () => {
  it('is that of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    assert.deepEqual((await cli(['--version'])).stdout, `weir ${version}\n`)
  })
})
