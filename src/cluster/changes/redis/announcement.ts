import type { Change } from '../change-feed.ts'
import type { AlarmClock } from '../../../shared/clock.ts'
import { REPLICAS_KEYS } from '../../redis/link.ts'
import { luaBeside, script, type Script } from '../../redis/script.ts'

export const announceScript = script(luaBeside(import.meta.url, 'announce'))
export const VERSIONS = 'weir:{replicas}:versions'
const ANSWER_WITHIN_MS = 1000

/** The process that announces a change: a replica, or a command. */
export interface Announcer {
  /** Replicas answer on the channel of this name. */
  readonly name: string
  run(script: Script, keys: readonly string[], values: readonly string[]): Promise<unknown>
  /** Calls `answered` for every replica that answers. Returns a function that ends this. */
  onAnswer(id: string, answered: (replica: string) => void): () => void
}

export interface Announced {
  /** undefined if Redis did not answer. */
  readonly version: string | undefined
  /** The replicas that did not answer in time. */
  readonly unreached: readonly string[]
}

export const answersTo = (name: string): string => `weir:changes:${name}`

/** Notifies every replica of a change, and waits until each has applied it, but at most a second. */
export async function announceChange(
  { name, run, onAnswer }: Announcer,
  clock: AlarmClock,
  { change, id }: { readonly change: Change; readonly id: string },
): Promise<Announced> {
  const answered = new Set([name])
  let expected: readonly string[] | undefined
  const done = Promise.withResolvers<void>()
  const check = (): void => {
    if (expected?.every((replica) => answered.has(replica))) done.resolve()
  }
  const end = onAnswer(id, (replica) => {
    answered.add(replica)
    check()
  })
  const cancel = clock.after(ANSWER_WITHIN_MS, done.resolve)
  try {
    const keys = [VERSIONS, REPLICAS_KEYS[1]]
    const answer = (await run(announceScript, keys, [change, `${name}\n${id}\n${change}`])) as [number, string[]]
    expected = answer[1]
    check()
    await done.promise
    return { version: String(answer[0]), unreached: expected.filter((replica) => !answered.has(replica)) }
  } catch {
    return { version: undefined, unreached: ['every other replica, because Redis does not answer'] }
  } finally {
    cancel()
    end()
  }
}
