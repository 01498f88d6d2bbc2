import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { within } from './waiting.ts'

/** What a service has left when it has stopped, or when its start has failed. */
export interface Left {
  /** What the start threw, if it failed. Then there is nothing of the next three. */
  readonly failure?: string
  /** The value of `use`. */
  readonly used?: unknown
  readonly refused?: boolean
  readonly operatorRefused?: boolean
  /** Timers that repeat, watched files and threads, with the place that opened them. */
  readonly open: readonly string[]
  /** Open files below its folder. */
  readonly files: readonly string[]
  /** Of the processes that it has started, those that still run. */
  readonly children: readonly string[]
}

/**
 * Starts a service in a process of its own, stops it when the expression `use` has its value, and waits for the process. The
 * command `weir serve` ends its process itself, so that nothing could keep it; this one ends only if nothing is left open.
 */
export async function leftAfterStop(
  t: TestContext,
  folder: string,
  config: object,
  { use = 'undefined', environment = {} }: { readonly use?: string; readonly environment?: NodeJS.ProcessEnv } = {},
): Promise<Left> {
  const file = join(folder, 'weir.yaml')
  writeFileSync(file, JSON.stringify({ server: { port: 0, admin_port: 0 }, ...config }))
  writeFileSync(join(folder, 'program.mjs'), program(folder, file, use))
  const child = spawn(process.execPath, [join(folder, 'program.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...environment },
  })
  t.after(() => child.kill('SIGKILL'))
  const ended = Promise.all([text(child.stdout), once(child, 'exit')])
  const [output, [code]] = await within(60_000, 'the process ends', ended)
  if (code !== 0) throw new Error(`the process ended with ${code}: ${output}`)
  return JSON.parse(output) as Left
}

function program(folder: string, config: string, use: string): string {
  const of = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)
  return `
    import { createHook } from 'node:async_hooks'
    import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
    // What is repeated without keeping the process alive would be left unnoticed.
    const open = new Map()
    createHook({
      init(id, type, trigger, resource) {
        const isRepeated = type === 'Timeout' && resource._repeat !== null
        if (!isRepeated && !/^(STATWATCHER|FSEVENTWRAP|WORKER)$/.test(type)) return
        const place = new Error().stack.split('\\n').find((it) => it.includes('/src/') && !it.includes('node_modules'))
        if (place) open.set(id, type + place)
      },
      destroy: (id) => open.delete(id),
    }).enable()
    const { startService } = await import(${of('compose.ts')})
    const { loadConfig } = await import(${of('config.ts')})
    const config = loadConfig({ config: ${JSON.stringify(config)} }, process.env)
    const isRefused = (url) => fetch(url).then(() => false, () => true)
    const targetOf = (file) => { try { return readlinkSync(file) } catch { return '' } }
    const result = {}
    // When nothing is left that keeps the process alive.
    process.once('beforeExit', () => process.stdout.write(JSON.stringify({
      ...result,
      open: [...open.values()],
      files: readdirSync('/proc/self/fd').map((it) => targetOf('/proc/self/fd/' + it))
        .filter((it) => it.startsWith(${JSON.stringify(folder)})),
      children: readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').split(' ').filter(Boolean)
        .map((pid) => readFileSync('/proc/' + pid + '/cmdline', 'utf8').replaceAll('\\0', ' ')),
    })))
    try {
      const service = await startService(config, { log: { write() {}, flush: async () => {} } })
      const ask = (path, key = service.firstKey, init) =>
        fetch(service.url + path, { headers: { authorization: 'Bearer ' + key, 'content-type': 'application/json' }, ...init })
          .then(async (it) => { await it.text(); return it.status })
      const chat = (model, more) =>
        ask('/api/v1/chat/completions', undefined, {
          method: 'POST',
          body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], ...more }),
        })
      result.used = await (async () => (${use}))()
      await Promise.all([service.stop(), service.stop()])
      result.refused = await isRefused(service.url)
      result.operatorRefused = await isRefused(service.adminUrl)
    } catch (error) {
      result.failure = error.message
    }`
}
