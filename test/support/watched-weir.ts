import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The service in a process of its own, which measures how long a turn of its event loop takes. */
export interface WatchedWeir {
  readonly base: string
  readonly adminUrl: string
  readonly dataDir: string
  readonly key: string
  readonly pid: number
  /** How long the process needs to parse a plain body of 20 MB, in milliseconds of CPU time. */
  calibrate(): Promise<number>
  /** The CPU time of the longest turn of its event loop while `work` runs, in milliseconds. */
  longestTurn(work: () => Promise<void>): Promise<number>
  stop(): Promise<void>
}

export async function watchedWeir(config: object): Promise<WatchedWeir> {
  const program = fileURLToPath(new URL('watched-weir-program.ts', import.meta.url))
  const child = fork(program, [JSON.stringify(config)], { execArgv: process.execArgv.filter((it) => !/test/.test(it)) })
  const answered = async (): Promise<unknown> => {
    const [message] = (await once(child, 'message')) as [unknown]
    return message
  }
  const ask = async (question: string): Promise<number> => {
    child.send(question)
    return Number(await answered())
  }
  const where = (await answered()) as Pick<WatchedWeir, 'base' | 'adminUrl' | 'dataDir' | 'key'>
  return {
    ...where,
    pid: child.pid ?? 0,
    calibrate: () => ask('calibrate'),
    async longestTurn(work) {
      await ask('forget')
      await work()
      return ask('worst')
    },
    async stop() {
      const ended = once(child, 'exit')
      child.send('stop')
      await ended
    },
  }
}
