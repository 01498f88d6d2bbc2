import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'
import { eventually } from './waiting.ts'
import { modelEntry, type TestWeir } from './weir.ts'
import { BUSY_MACHINE_MS } from './weir-process.ts'

/** Models whose engines the service starts, for tests. */

const program = fileURLToPath(new URL('engine-program.ts', import.meta.url))
export const folder = mkdtempSync(join(tmpdir(), 'weir-on-demand-'))
let files = 0

/** A model whose engine Weir starts, and what its engine notes. */
export async function model(id: string, run: object = {}, env: Record<string, string> = {}, kind = 'llamacpp') {
  // Another test file of the process may have removed it.
  mkdirSync(folder, { recursive: true })
  const notesFile = join(folder, `notes-${++files}`)
  const lines = (): readonly string[] => {
    try {
      return readFileSync(notesFile, 'utf8').split('\n').filter(Boolean)
    } catch {
      return []
    }
  }
  return {
    entry: modelEntry([], {
      id,
      aliases: [],
      serverless: {
        engine: {
          kind,
          model: 'm',
          run: {
            command: [process.execPath, program, '${PORT}'],
            port: await freePort(),
            env: { NOTES: notesFile, ...env },
            ...run,
          },
        },
        limits: { max_wait_ms: 120_000, max_concurrent_requests: 4 },
      },
    }) as { serverless: { engine: { run: { port: number } } } },
    notesFile,
    lines,
    calls: () => lines().filter((line) => line.startsWith('call ')),
    pids: () => lines().flatMap((line) => (line.startsWith('pid ') ? [Number(line.slice(4))] : [])),
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

export const say = (weir: Pick<TestWeir, 'chat'>, id: string, content = 'Hi'): Promise<Response> =>
  weir.chat({ model: id, messages: [{ role: 'user', content }] })

export async function stateOf(weir: TestWeir, lane: string): Promise<string | undefined> {
  const answer = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
    data: { lane: string; on_demand: { state: string } | null }[]
  }
  return answer.data.find((it) => it.lane === lane)?.on_demand?.state
}

export const reached = (weir: TestWeir, lane: string, state: string): Promise<void> =>
  eventually(`${lane} is ${state}`, async () => (await stateOf(weir, lane)) === state, BUSY_MACHINE_MS)

export function removeNotes(): void {
  rmSync(folder, { recursive: true, force: true })
}
