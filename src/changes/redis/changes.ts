import type { Change, ChangeFeed } from '../../ports/changes.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { RedisLink } from '../../redis/link.ts'
import { luaBeside, script } from '../../redis/script.ts'
import { announceChange, announceScript, answersTo, VERSIONS } from './announcement.ts'
import { memoryChanges } from '../memory.ts'

const versionsScript = script(luaBeside(import.meta.url, 'versions'))
const EVERYBODY = 'weir:changes'
const CHANGES: readonly Change[] = ['accounts', 'keys', 'prices', 'catalog', 'lanes', 'sessions']

export interface ChangeEvents {
  /** These replicas did not answer in time. */
  unreached(change: Change, replicas: readonly string[]): void
}

/**
 * The change feed of all replicas. A message says that something has changed, each replica reads it again and answers.
 * Messages can be lost, so every replica also compares the versions of all changes once a second.
 */
export function redisChanges(link: RedisLink, clock: AlarmClock, events: ChangeEvents): ChangeFeed {
  const here = memoryChanges()
  const answers = answersTo(link.replica)
  const waiting = new Map<string, (replica: string) => void>()
  const seen = new Map<Change, string>()
  let announced = 0

  link.follow({
    scripts: [announceScript, versionsScript],
    channels: [EVERYBODY, answers],
    joined() {
      // Messages of the time without a connection are lost, and so may be the versions.
      seen.clear()
      void catchUp()
    },
    lost() {},
    beat: () => void catchUp(),
    hear(channel, message) {
      const [from = '', id = '', change = '', version = ''] = message.split('\n')
      if (channel === answers) waiting.get(id)?.(from)
      else if (from !== link.replica) void takeIn(from, id, change as Change, version)
    },
  })

  /** Only the very next version: if one was missed, the comparison of versions finds out. */
  function follow(change: Change, version: string): void {
    if (seen.get(change) === String(Number(version) - 1)) seen.set(change, version)
  }

  async function takeIn(from: string, id: string, change: Change, version: string): Promise<void> {
    follow(change, version)
    try {
      await here.announce(change)
      await link.publish(answersTo(from), `${link.replica}\n${id}`)
    } catch {
      // Without an answer the command names this replica, and the next comparison of versions tries again.
      seen.delete(change)
    }
  }

  async function catchUp(): Promise<void> {
    if (!link.membership()) return
    const versions = (await link.run(versionsScript, [VERSIONS], CHANGES).catch(() => [])) as (string | null)[]
    for (const [index, version] of versions.entries()) {
      const change = CHANGES[index]
      if (change === undefined || seen.get(change) === (version ?? '0')) continue
      // Whatever was changed before. The catalog is a file, which is watched.
      const isFirst = !seen.has(change)
      seen.set(change, version ?? '0')
      if (isFirst && change === 'catalog') continue
      await here.announce(change).catch(() => seen.delete(change))
    }
  }

  const announcer = {
    name: link.replica,
    run: link.run,
    hear(id: string, answered: (replica: string) => void) {
      waiting.set(id, answered)
      return () => waiting.delete(id)
    },
  }

  return {
    async announce(change) {
      await here.announce(change)
      const id = `${link.replica}.${++announced}`
      const { version, unreached } = await announceChange(announcer, clock, { change, id })
      if (version !== undefined) follow(change, version)
      if (unreached.length > 0) events.unreached(change, unreached)
      return unreached
    },
    subscribe: here.subscribe,
  }
}
