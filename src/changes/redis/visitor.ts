import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Change } from '../../ports/changes.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import { announceChange, answersTo } from './announcement.ts'

const CONNECT_MS = 2000

/**
 * Tells all replicas what a command has changed, on a machine where none of them runs. Returns those that did not answer
 * in time.
 */
export async function tellReplicas(
  url: string,
  changes: readonly Change[],
  clock: AlarmClock,
): Promise<readonly string[]> {
  const name = `command-${randomBytes(6).toString('hex')}`
  const settings = { protocol: 2 as const, connectTimeout: CONNECT_MS, retryStrategy: () => null }
  const commands = new Redis(url, settings)
  const messages = new Redis(url, settings)
  const heard = new Map<string, (replica: string) => void>()
  for (const connection of [commands, messages]) connection.on('error', () => {})
  messages.on('message', (_channel: string, message: string) => {
    const [replica = '', id = ''] = message.split('\n')
    heard.get(id)?.(replica)
  })
  const announcer = {
    name,
    run: ({ lua }: { readonly lua: string }, keys: readonly string[], values: readonly string[]) =>
      commands.eval(lua, keys.length, ...keys, ...values),
    hear(id: string, answered: (replica: string) => void) {
      heard.set(id, answered)
      return () => heard.delete(id)
    },
  }
  try {
    await messages.subscribe(answersTo(name)).catch(() => {})
    const told = await Promise.all(changes.map((change) => announceChange(announcer, clock, { change, id: change })))
    return [...new Set(told.flatMap(({ unreached }) => unreached))]
  } finally {
    commands.disconnect()
    messages.disconnect()
  }
}
