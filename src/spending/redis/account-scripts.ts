import type { PicoAud } from '../../core/money/money.ts'
import { REPLICAS_KEYS, type Membership, type RedisLink } from '../../redis/link.ts'
import { luaBeside, script, type Script } from '../../redis/script.ts'

type AccountScripts = Readonly<Record<'reserve' | 'fold', Script>>

/** `lua` gives the text of each file. A simulation replaces `outside`, and mutants replace others. */
export function accountScripts(lua = (name: string) => luaBeside(import.meta.url, name)): AccountScripts {
  const event = (name: string): Script => script(lua('outside'), lua('account'), lua(name))
  return { reserve: event('reserve'), fold: event('fold') }
}

export const scripts = accountScripts()

/** For each replica what it has settled in a month, and the part of it that was in the database. */
export type Echo = Readonly<Record<string, readonly [settled: string, delivered: string]>>
/** What was last heard of others, by replica. */
export type Known = Readonly<Record<string, readonly [owner: string, month: string, open: string]>>

/** Whose journal a replica writes, and whose it found and brought into the database when it started; '' for nobody's. */
export interface JournalOwners {
  readonly owner: string
  readonly predecessor: string
}

export interface Reservation extends JournalOwners {
  readonly replica: string
  /** The number of this call. Only a higher one than the last is heard. */
  readonly turn: number
  /** The beginning of the month that this replica is in, and of the next one. */
  readonly month: number
  readonly nextMonth: number
  readonly held: PicoAud
  /** By month. */
  readonly counts: ReadonlyMap<number, { readonly settled: PicoAud; readonly delivered: PicoAud }>
  readonly wants: readonly { readonly amount: PicoAud; readonly limit: PicoAud }[]
  /** The limit that is told of when it is reached. */
  readonly limit: PicoAud | undefined
  readonly known: Known
}

export interface Told {
  readonly generation: number
  /** How long nothing is held, because replicas are still coming back. */
  readonly quietMs: number
  /** For each want; undefined if nothing could be decided. */
  readonly decisions: readonly boolean[] | undefined
  /** undefined while the sum of the month is not known. */
  readonly spent: PicoAud | undefined
  /** Before the wants, by all replicas. */
  readonly held: PicoAud
  /** The limit is reached, and nobody has told of it. */
  readonly isReached: boolean
  /** Months whose sums are to be read in the database. The decisions wait for that unless they are here. */
  readonly unread: ReadonlyMap<number, Echo>
  readonly known: Known
}

interface Answer {
  readonly state: 'told' | 'unknown'
  readonly generation: number
  readonly quiet: number
  readonly decisions?: string
  readonly spent?: string
  readonly held: string
  readonly is_reached?: boolean
  readonly unread: Readonly<Record<string, Echo>>
  readonly known: Known
}

/** What a workspace spends, as all replicas know it. */
export function remoteAccount(link: Pick<RedisLink, 'run'>, workspaceId: string) {
  // With the tag of the epoch, so that no script decides in an epoch that has ended.
  const keys = [`weir:{replicas}:spending ${workspaceId}`, REPLICAS_KEYS[0]]
  return {
    /** undefined: Redis does not listen, because it has lost its data or heard a later call. */
    async reserve({ epoch }: Membership, said: Reservation): Promise<Told | undefined> {
      const text = JSON.stringify({
        ...said,
        epoch,
        month: String(said.month),
        next_month: String(said.nextMonth),
        held: String(said.held),
        counts: Object.fromEntries(
          [...said.counts].map(([month, it]) => [month, [String(it.settled), String(it.delivered)]]),
        ),
        wants: said.wants.map(({ amount, limit }) => [String(amount), String(limit)]),
        limit: said.limit?.toString(),
      })
      const answer = JSON.parse((await link.run(scripts.reserve, keys, [text])) as string) as Answer
      if (answer.state === 'unknown') return undefined
      const { decisions, spent } = answer
      return {
        generation: answer.generation,
        quietMs: answer.quiet,
        decisions: answer.quiet > 0 || decisions === undefined ? undefined : Array.from(decisions, (it) => it === '1'),
        spent: spent === undefined ? undefined : BigInt(spent),
        held: BigInt(answer.held),
        isReached: answer.is_reached ?? false,
        unread: new Map(Object.entries(answer.unread).map(([month, echo]) => [Number(month), echo])),
        known: answer.known,
      }
    },
    /** The sum of a month, which was read after `reserve` answered. */
    async fold({ epoch }: Membership, { generation, unread }: Told, month: number, base: PicoAud): Promise<void> {
      const said = { epoch, generation, month: String(month), echo: unread.get(month), base: String(base) }
      await link.run(scripts.fold, keys, [JSON.stringify(said)])
    },
  }
}
