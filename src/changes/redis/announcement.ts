import type { Change } from '../../ports/changes.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import { REPLICAS_KEYS } from '../../redis/link.ts'
import { luaBeside, script, type Script } from '../../redis/script.ts'

export const announceScript = script(luaBeside(import.meta.url, 'announce'))
export const VERSIONS = 'weir:{replicas}:versions'
const ANSWER_WITHIN_MS = 1000

/** Whoever announces a change: a replica, or a command. */
export interface Announcer {
  /** Answers go to its channel. */
  readonly name: string
  run(script: Script, keys: readonly string[], values: readonly string[]): Promise<unknown>
  /** Calls back for every replica that answers. Returns the function that ends it. */
  hear(id: string, answered: (replica: string) => void): () => void
}

export interface Announced {
  /** undefined if Redis did not answer. */
  readonly version: string | undefined
  /** The replicas that did not answer in time. */
  readonly unreached: readonly string[]
}

export const answersTo = (name: string): string => `weir:changes:${name}`

/** Tells every replica of a change, and waits until each has taken it in, or for a second. */
export async function announceChange(
  { name, run, hear }: Announcer,
  clock: AlarmClock,
  { change, id }: { readonly change: Change; readonly id: string },
): Promise<Announced> {
  const answered = new Set([name])
  let expected: readonly string[] | undefined
  const done = Promise.withResolvers<void>()
  const check = (): void => {
    if (expected?.every((replica) => answered.has(replica))) done.resolve()
  }
  const end = hear(id, (replica) => {
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
