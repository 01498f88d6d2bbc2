import type { Change, ChangeFeed } from '../ports/changes.ts'
import type { AlarmClock } from '../ports/clock.ts'
import { REPLICAS_KEYS, type RedisLink } from '../redis/link.ts'
import { luaBeside, script } from '../redis/script.ts'
import { memoryChanges } from './memory.ts'

const announceScript = script(luaBeside(import.meta.url, 'announce'))
const versionsScript = script(luaBeside(import.meta.url, 'versions'))
const VERSIONS = 'weir:{replicas}:versions'
const EVERYBODY = 'weir:changes'
const CHANGES: readonly Change[] = ['accounts', 'keys', 'prices', 'catalog', 'lanes']
const ANSWER_WITHIN_MS = 1000

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
  const answersTo = `weir:changes:${link.replica}`
  const waiting = new Map<string, (replica: string) => void>()
  const seen = new Map<Change, string>()
  let announced = 0

  link.follow({
    scripts: [announceScript, versionsScript],
    channels: [EVERYBODY, answersTo],
    joined() {
      // Messages of the time without a connection are lost, and so may be the versions.
      seen.clear()
      void catchUp()
    },
    lost() {},
    beat: () => void catchUp(),
    hear(channel, message) {
      const [from = '', id = '', change = '', version = ''] = message.split('\n')
      if (channel === answersTo) waiting.get(id)?.(from)
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
      await link.publish(`weir:changes:${from}`, `${link.replica}\n${id}`)
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

  return {
    async announce(change) {
      await here.announce(change)
      const id = `${link.replica}.${++announced}`
      const unreached = await tellOthers(change, id)
      if (unreached.length > 0) events.unreached(change, unreached)
      return unreached
    },
    subscribe: here.subscribe,
  }

  /** Returns who did not answer in time. */
  async function tellOthers(change: Change, id: string): Promise<readonly string[]> {
    const answered = new Set([link.replica])
    let expected: readonly string[] | undefined
    const done = Promise.withResolvers<void>()
    const check = (): void => {
      if (expected?.every((replica) => answered.has(replica))) done.resolve()
    }
    waiting.set(id, (replica) => {
      answered.add(replica)
      check()
    })
    const cancel = clock.after(ANSWER_WITHIN_MS, done.resolve)
    try {
      const keys = [VERSIONS, REPLICAS_KEYS[1]]
      const message = `${link.replica}\n${id}\n${change}`
      const [version, replicas] = (await link.run(announceScript, keys, [change, message])) as [number, string[]]
      follow(change, String(version))
      expected = replicas
      check()
      await done.promise
      return expected.filter((replica) => !answered.has(replica))
    } catch {
      return ['every other replica, because Redis does not answer']
    } finally {
      cancel()
      waiting.delete(id)
    }
  }
}
