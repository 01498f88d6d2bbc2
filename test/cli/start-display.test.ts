import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { startDisplay } from '../../src/cli/serve/start-display.ts'
import { stopSignal } from '../../src/cli/serve/stop-signal.ts'
import { viewOn } from '../../src/cli/terminal/view.ts'
import type { Service } from '../../src/compose.ts'
import type { Config } from '../../src/config.ts'
import type { Model } from '../../src/catalog/model.ts'
import { plain } from '../support/terminal.ts'

function stream(columns: number | undefined) {
  const written: string[] = []
  const listeners = new Set<unknown>()
  return {
    ...(columns === undefined ? {} : { isTTY: true, columns }),
    hasColors: () => false,
    write: (text: string) => written.push(text) > 0,
    on: (_event: string, listener: unknown) => listeners.add(listener),
    off: (_event: string, listener: unknown) => listeners.delete(listener),
    written,
    listeners,
    /** The text since the last call. */
    text: () => plain(written.splice(0).join('')),
  }
}

const model = (id: string, category = 'llm', supportedParameters: readonly string[] = []): Model =>
  ({ id, categories: [category], supportedParameters }) as never

/** A start on these terminals; undefined is a pipe. */
function stage(t: TestContext, columns: { stdout?: number; stderr?: number }, isJson = false) {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-display-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  const [stdout, stderr] = [stream(columns.stdout), stream(columns.stderr)]
  const display = startDisplay({ stdout, stderr } as never, { isJson })
  const config = { sharedDir: dataDir, operatorToken: undefined } as Config
  const service = (changes: Partial<Service> = {}): Service =>
    ({
      url: 'http://h:1',
      adminUrl: 'http://h:2',
      firstKey: 'weir_first',
      consoleLink: async () => 'http://h:1/console#link=a',
      operatorConsoleLink: async () => 'http://h:2/console#link=b',
      models: [model('a/embed', 'embedding'), model('a/away'), model('a/talk', 'llm', ['temperature'])],
      isUp: ({ id }: Model) => id !== 'a/away',
      ...changes,
    }) as Service
  return { dataDir, stdout, stderr, display, config, service }
}

describe('a start on a terminal', () => {
  it('shows where everything is, the first key, and a request that can be pasted', async (t) => {
    const { display, config, service, stdout, stderr, dataDir } = stage(t, { stdout: 80, stderr: 80 })
    await display.started(service(), config, '')
    assert.equal(
      stdout.text(),
      `
  Weir is running. Ctrl-C stops it.

  Console   http://h:1/console#link=a
  API       http://h:1/api/v1
  Docs      http://h:1/docs
  Operator  http://h:2/console#link=b
  Token     operator-token in the data directory
  Data      ${dataDir}
  Models    3

  The links sign in to the consoles, each once, within 30 minutes.

  Your first API key (it is not shown again):
    weir_first

  Try it:
    curl http://h:1/api/v1/chat/completions \\
      --oauth2-bearer weir_first \\
      -H "Content-Type: application/json" -d '{
        "model": "a/talk",
        "temperature": 0, "max_tokens": 40,
        "messages": [{"role": "user", "content": "Name the capital of France."}]
      }'

`,
    )
    assert.equal(stderr.text(), '')
    assert.ok(!existsSync(join(dataDir, 'first-api-key')))
  })

  it('shows on a later start how to create a key, and where the first one is', async (t) => {
    const { display, config, service, stdout, dataDir } = stage(t, { stdout: 80 })
    const later = service({ firstKey: undefined, consoleLink: async () => undefined, models: [model('a/talk')] })
    await display.started(later, { ...config, operatorToken: 'mine' }, ' --data /srv')
    const text = stdout.text()
    assert.match(text, /\n {2}Console {3}http:\/\/h:1\/console\n/)
    assert.match(text, /\n {2}Token {5}yours\n/)
    assert.match(text, /\n\n {2}Make an API key with:\n {4}npx weir keys create --workspace default --data \/srv\n\n/)
    assert.match(text, /--oauth2-bearer "\$WEIR_API_KEY" [^]*\n {8}"max_tokens": 40,\n/)
    writeFileSync(join(dataDir, 'first-api-key'), 'x')
    await display.started(later, config, '')
    assert.ok(stdout.text().includes(`\n  The first one is in ${join(dataDir, 'first-api-key')}.\n`))
  })

  it('shows downloads in one block, and the request once the first chat model is ready', async (t) => {
    const { display, config, service, stdout } = stage(t, { stdout: 60, stderr: 60 })
    const fetching = display.display.fetching ?? assert.fail()
    fetching.progress?.({ slug: 'a/talk', receivedBytes: 5_000_000, totalBytes: 10_000_000 })
    assert.equal(stdout.text(), `a/talk  ${'█'.repeat(10)}${'░'.repeat(10)}  5 of 10 MB\n`)
    // One column less than the terminal has, which would wrap otherwise.
    fetching.progress?.({ slug: 'a'.repeat(38), receivedBytes: 5_000_000, totalBytes: 10_000_000 })
    assert.equal(stdout.text(), `${'a'.repeat(38)}  ████░░░  5 of 10 MB\n`)
    fetching.ready?.('a/talk')
    // Before the start, the overview is still to come.
    assert.equal(stdout.text(), '')
    const up = new Set(['a/embed'])
    await display.started(service({ isUp: ({ id }) => up.has(id) }), config, '')
    assert.match(
      stdout.text(),
      /\n {2}No chat model is ready yet\. Wait for downloads that are shown, or add your own\n {2}model to weir\.yaml \(weir\.example\.yaml shows how\)\.\n\n$/,
    )
    fetching.ready?.('a/embed')
    // Its files are there, but nothing runs it yet.
    fetching.ready?.('a/away')
    assert.equal(stdout.text(), '')
    up.add('a/away')
    fetching.ready?.('a/away')
    assert.match(stdout.text(), /^Try it:\n {2}curl .*\n[^]*"model": "a\/away",[^]*\}'\n\n$/)
    up.add('a/talk')
    fetching.ready?.('a/talk')
    assert.equal(stdout.text(), '')
    fetching.progress?.({ slug: 'a/more', receivedBytes: 0, totalBytes: undefined })
    assert.match(stdout.text(), /^a\/more /)
    fetching.failed?.('a/more', 'cut')
    assert.equal(stdout.text(), '')
    display.display.log?.write('{"level":30,"time":"2026-11-15T00:00:00.000Z","msg":"hello"}')
    assert.equal(stdout.text(), '11:00:00 hello\n')
    assert.equal(stdout.listeners.size, 1)
    display.close()
    assert.equal(stdout.listeners.size, 0)
  })

  it('shows downloads on stderr if only stderr is a terminal, and its log only there', async (t) => {
    const { display, stderr, stdout } = stage(t, { stderr: 60 })
    display.display.fetching?.progress?.({ slug: 'a/talk', receivedBytes: 1, totalBytes: 2 })
    assert.match(stderr.text(), /^a\/talk /)
    assert.equal(stdout.text(), '')
    assert.ok(display.display.log)
    assert.equal(stage(t, { stdout: 60 }).display.display.log, undefined)
  })

  it('shows a request only once: not again after the overview had one', async (t) => {
    const { display, config, service, stdout } = stage(t, { stdout: 80 })
    await display.started(service(), config, '')
    stdout.text()
    display.display.fetching?.ready?.('a/away')
    assert.equal(stdout.text(), '')
  })
})

describe('a start without a terminal, or with --json', () => {
  it('writes one line of JSON, and the first key to a file that only its owner can read', async (t) => {
    for (const [columns, isJson] of [
      [{}, false],
      [{ stdout: 80, stderr: 80 }, true],
    ] as const) {
      const { display, config, service, stdout, stderr, dataDir } = stage(t, columns, isJson)
      const file = join(dataDir, 'first-api-key')
      writeFileSync(file, 'old', { mode: 0o644 })
      display.display.fetching?.progress?.({ slug: 'a/talk', receivedBytes: 1, totalBytes: 2 })
      t.mock.timers.enable({ apis: ['Date'], now: 0 })
      await display.started(service(), config, '')
      t.mock.timers.reset()
      const line = stdout.text()
      assert.ok(line.endsWith('\n'))
      assert.deepEqual(JSON.parse(line), {
        level: 30,
        time: '1970-01-01T00:00:00.000Z',
        url: 'http://h:1',
        api: 'http://h:1/api/v1',
        docs: 'http://h:1/docs',
        console: 'http://h:1/console',
        operator: 'http://h:2',
        data_dir: dataDir,
        models: 3,
        first_api_key_file: file,
        msg: 'Weir is running',
      })
      assert.equal(readFileSync(file, 'utf8'), 'weir_first\n')
      assert.equal(statSync(file).mode & 0o777, 0o600)
      assert.equal(display.display.log, undefined)
      display.display.fetching?.ready?.('a/talk')
      await display.started(service({ firstKey: undefined }), config, '')
      assert.ok(!stdout.text().includes('first_api_key_file'))
      assert.equal(stderr.text(), '')
      display.close()
    }
  })
})

describe('a view', () => {
  it('is as wide as its terminal, within a minimum, and unlimited without a terminal', () => {
    const widthOf = (columns: number | undefined) => viewOn(stream(columns) as never).width
    assert.deepEqual([120, 10, 0, undefined].map(widthOf), [120, 40, 80, Infinity])
  })
})

describe('a signal to stop', () => {
  /** Runs with handlers of signals that the test calls itself, on terminals that the test closes. */
  function stage(t: TestContext) {
    const exits: unknown[] = []
    t.mock.method(process, 'exit', (code: unknown) => exits.push(code) as never)
    const before = new Map(
      (['SIGTERM', 'SIGINT', 'SIGHUP'] as const).map((name) => [name, process.listeners(name)] as const),
    )
    let [reloads, hurries] = [0, 0]
    let seen: string | undefined
    const signalled = stopSignal(
      () => void (reloads += 1),
      () => void (hurries += 1),
    ).then(({ name }) => void (seen = name))
    t.after(() => {
      for (const [name, listeners] of before) {
        for (const listener of process.listeners(name)) if (!listeners.includes(listener)) process.off(name, listener)
      }
    })
    const send = (name: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void => {
      for (const listener of process.listeners(name)) {
        if (!before.get(name)?.includes(listener)) (listener as (name: string) => void)(name)
      }
    }
    return { send, exits, signalled, seen: () => seen, reloads: () => reloads, hurries: () => hurries }
  }

  it('stops gracefully, and immediately when a second one arrives', async (t) => {
    let now = 1000
    t.mock.method(performance, 'now', () => now)
    const { send, exits, signalled, seen, hurries } = stage(t)
    send('SIGINT')
    await signalled
    assert.equal(seen(), 'SIGINT')
    now += 500
    // The same one again, which npm has passed on.
    send('SIGINT')
    assert.deepEqual([exits, hurries()], [[], 0])
    now += 1
    send('SIGINT')
    assert.deepEqual([exits, hurries()], [[1], 1])
  })

  it('stops immediately when a second one arrives, however soon', async (t) => {
    t.mock.method(performance, 'now', () => 1000)
    const { send, exits, signalled, seen } = stage(t)
    send('SIGTERM')
    await signalled
    assert.equal(seen(), 'SIGTERM')
    send('SIGINT')
    assert.deepEqual(exits, [1])
  })

  it('reloads on SIGHUP while its terminals exist', (t) => {
    const { send, seen, reloads, exits } = stage(t)
    send('SIGHUP')
    send('SIGHUP')
    assert.deepEqual([reloads(), seen(), exits], [2, undefined, []])
  })
})
