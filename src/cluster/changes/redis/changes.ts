import type { Change, ChangeFeed } from '../change-feed.ts'
import type { AlarmClock } from '../../../shared/clock.ts'
import type { RedisLink } from '../../redis/link.ts'
import { luaBeside, script } from '../../redis/script.ts'
import { announceChange, announceScript, answersTo, VERSIONS } from './announcement.ts'
import { memoryChanges } from '../memory.ts'

const versionsScript = script(luaBeside(import.meta.url, 'versions'))
const CHANGES_CHANNEL = 'weir:changes'
const CHANGES: readonly Change[] = ['accounts', 'keys', 'prices', 'catalog', 'lanes', 'sessions', 'batches']

export interface ChangeEvents {
  /** These replicas did not answer in time. */
  unreached(change: Change, replicas: readonly string[]): void
}

/**
 * The change feed of all replicas. A message announces a change; each replica reads the data again and answers.
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
    channels: [CHANGES_CHANNEL, answers],
    joined() {
      // Messages sent while disconnected are lost, and Redis may have lost the versions.
      seen.clear()
      void catchUp()
    },
    lost() {},
    heartbeat: () => void catchUp(),
    receive(channel, message) {
      const [from = '', id = '', change = '', version = ''] = message.split('\n')
      if (channel === answers) waiting.get(id)?.(from)
      else if (from !== link.replica) void apply(from, id, change as Change, version)
    },
  })

  /** Accepts only the next version. If one was missed, `catchUp` detects it. */
  function follow(change: Change, version: string): void {
    if (seen.get(change) === String(Number(version) - 1)) seen.set(change, version)
  }

  async function apply(from: string, id: string, change: Change, version: string): Promise<void> {
    follow(change, version)
    try {
      await here.announce(change)
      await link.publish(answersTo(from), `${link.replica}\n${id}`)
    } catch {
      // Without an answer, the announcer lists this replica as unreached. The next `catchUp` tries again.
      seen.delete(change)
    }
  }

  async function catchUp(): Promise<void> {
    if (!link.membership()) return
    const versions = (await link.run(versionsScript, [VERSIONS], CHANGES).catch(() => [])) as (string | null)[]
    for (const [index, version] of versions.entries()) {
      const change = CHANGES[index]
      if (change === undefined || seen.get(change) === (version ?? '0')) continue
      // On the first comparison, reload everything that may have changed, except the catalog: its file is watched.
      const isFirst = !seen.has(change)
      seen.set(change, version ?? '0')
      if (isFirst && change === 'catalog') continue
      await here.announce(change).catch(() => seen.delete(change))
    }
  }

  const announcer = {
    name: link.replica,
    run: link.run,
    onAnswer(id: string, answered: (replica: string) => void) {
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
