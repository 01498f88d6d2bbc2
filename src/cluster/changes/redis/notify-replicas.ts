import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Change } from '../change-feed.ts'
import type { AlarmClock } from '../../../shared/clock.ts'
import { announceChange, answersTo } from './announcement.ts'

const CONNECT_MS = 2000

/**
 * Notifies all replicas of the changes of a command that runs on a machine without a replica. Returns the replicas that
 * did not answer in time.
 */
export async function notifyReplicas(
  url: string,
  changes: readonly Change[],
  clock: AlarmClock,
): Promise<readonly string[]> {
  const name = `command-${randomBytes(6).toString('hex')}`
  const settings = { protocol: 2 as const, connectTimeout: CONNECT_MS, retryStrategy: () => null }
  const commands = new Redis(url, settings)
  const messages = new Redis(url, settings)
  const listeners = new Map<string, (replica: string) => void>()
  for (const connection of [commands, messages]) connection.on('error', () => {})
  messages.on('message', (_channel: string, message: string) => {
    const [replica = '', id = ''] = message.split('\n')
    listeners.get(id)?.(replica)
  })
  const announcer = {
    name,
    run: ({ lua }: { readonly lua: string }, keys: readonly string[], values: readonly string[]) =>
      commands.eval(lua, keys.length, ...keys, ...values),
    onAnswer(id: string, answered: (replica: string) => void) {
      listeners.set(id, answered)
      return () => listeners.delete(id)
    },
  }
  try {
    await messages.subscribe(answersTo(name)).catch(() => {})
    const announced = await Promise.all(
      changes.map((change) => announceChange(announcer, clock, { change, id: change })),
    )
    return [...new Set(announced.flatMap(({ unreached }) => unreached))]
  } finally {
    commands.disconnect()
    messages.disconnect()
  }
}
