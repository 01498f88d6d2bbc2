import type { PicoAud } from '../../../shared/money/money.ts'
import { REPLICAS_KEYS, type Membership, type RedisLink } from '../../../cluster/redis/link.ts'
import { luaBeside, script, type Script } from '../../../cluster/redis/script.ts'

type AccountScripts = Readonly<Record<'reserve' | 'checkpoint', Script>>

/** `lua` returns the text of a script file. The simulation replaces `outside`, and mutation tests replace the others. */
export function accountScripts(lua = (name: string) => luaBeside(import.meta.url, name)): AccountScripts {
  const event = (name: string): Script => script(lua('outside'), lua('account'), lua(name))
  return { reserve: event('reserve'), checkpoint: event('checkpoint') }
}

export const spendScripts = accountScripts()

/** By replica: what it has settled in a month, and how much of that is in the database. */
export type MonthCounts = Readonly<Record<string, readonly [settled: string, delivered: string]>>
/** The last known state of the other replicas. */
export type KnownReplicas = Readonly<Record<string, readonly [owner: string, month: string, open: string]>>

/**
 * The owner of the journal that a replica writes, and the owner of the journal that it found and delivered to the database
 * when it started; '' if it found none.
 */
export interface JournalOwners {
  readonly owner: string
  readonly predecessor: string
}

/** The complete state of one replica, sent with every call. */
export interface AccountReport extends JournalOwners {
  readonly replica: string
  /** The sequence number of this call. Redis ignores a call whose number is not higher than the last. */
  readonly turn: number
  /** The start of the current month by this replica's clock, and of the next one. */
  readonly month: number
  readonly nextMonth: number
  readonly held: PicoAud
  /** By month. */
  readonly counts: ReadonlyMap<number, { readonly settled: PicoAud; readonly delivered: PicoAud }>
  /** Requests that wait for a reservation. */
  readonly pending: readonly { readonly amount: PicoAud; readonly limit: PicoAud }[]
  /** The limit to report when it is reached. */
  readonly limit: PicoAud | undefined
  readonly known: KnownReplicas
}

export interface ReserveAnswer {
  readonly generation: number
  /** How long nothing can be reserved yet, because replicas are still reconnecting. */
  readonly quietMs: number
  /** Whether each pending reservation was made; undefined if nothing could be decided. */
  readonly decisions: readonly boolean[] | undefined
  /** undefined while the month's sum is unknown. */
  readonly spent: PicoAud | undefined
  /** By all replicas, before the pending reservations. */
  readonly held: PicoAud
  /** The limit is reached, and no replica has reported it yet. */
  readonly isReached: boolean
  /** Months whose sums must be read from the database. If `decisions` is undefined, it waits for these sums. */
  readonly unread: ReadonlyMap<number, MonthCounts>
  readonly known: KnownReplicas
}

interface Answer {
  readonly state: 'told' | 'unknown'
  readonly generation: number
  readonly quiet: number
  readonly decisions?: string
  readonly spent?: string
  readonly held: string
  readonly is_reached?: boolean
  readonly unread: Readonly<Record<string, MonthCounts>>
  readonly known: KnownReplicas
}

/** The spending account of a workspace in Redis, which all replicas share. */
export function remoteAccount(link: Pick<RedisLink, 'run'>, workspaceId: string) {
  // The same hash tag as the epoch's key, so that one script can check the epoch and change the account.
  const keys = [`weir:{replicas}:spending ${workspaceId}`, REPLICAS_KEYS[0]]
  return {
    /** Resolves with undefined if Redis ignored the call: it has lost its data, or has received a later call. */
    async reserve({ epoch }: Membership, { pending, ...report }: AccountReport): Promise<ReserveAnswer | undefined> {
      const text = JSON.stringify({
        ...report,
        epoch,
        month: String(report.month),
        next_month: String(report.nextMonth),
        held: String(report.held),
        counts: Object.fromEntries(
          [...report.counts].map(([month, it]) => [month, [String(it.settled), String(it.delivered)]]),
        ),
        wants: pending.map(({ amount, limit }) => [String(amount), String(limit)]),
        limit: report.limit?.toString(),
      })
      const answer = JSON.parse((await link.run(spendScripts.reserve, keys, [text])) as string) as Answer
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
    /** Stores the sum of a month, which was read from the database after `reserve` answered. */
    async checkpoint(
      { epoch }: Membership,
      { generation, unread }: ReserveAnswer,
      month: number,
      base: PicoAud,
    ): Promise<void> {
      const checkpoint = { epoch, generation, month: String(month), echo: unread.get(month), base: String(base) }
      await link.run(spendScripts.checkpoint, keys, [JSON.stringify(checkpoint)])
    },
  }
}
