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

/** The complete state of one replica in one account. */
export interface AccountReport {
  /** The name of the account. */
  readonly name: string
  /** The number of this opening of the account, which differs from that of every earlier one in this replica. */
  readonly opening: number
  /** The start of the current month by this replica's clock, and of the next one. For a daily limit, of days. */
  readonly month: number
  readonly nextMonth: number
  readonly held: PicoAud
  /** By month. */
  readonly counts: ReadonlyMap<number, { readonly settled: PicoAud; readonly delivered: PicoAud }>
  /** The limit to report when it is reached. */
  readonly limit: PicoAud | undefined
  readonly known: KnownReplicas
}

/** What one call sends: reports, and the reservations that requests wait for. */
export interface ReserveCall extends JournalOwners {
  readonly replica: string
  /** The sequence number of this call. Redis ignores a call whose number is not higher than the last. */
  readonly turn: number
  readonly accounts: readonly AccountReport[]
  readonly pending: readonly {
    readonly amount: PicoAud
    /** The hard limits that must have room, each in one of `accounts`. */
    readonly limits: readonly { readonly account: number; readonly limit: PicoAud }[]
  }[]
}

export interface AccountAnswer {
  readonly generation: number
  /** undefined while the month's sum is unknown. */
  readonly spent: PicoAud | undefined
  /** By all replicas, before the pending reservations. */
  readonly held: PicoAud
  /** The limit is reached, and no replica has reported it yet. */
  readonly isReached: boolean
  /** Months whose sums must be read from the database. If `spent` is undefined, reservations wait for these sums. */
  readonly unread: ReadonlyMap<number, MonthCounts>
  readonly known: KnownReplicas
}

export interface ReserveAnswer {
  /** How long nothing can be reserved yet, because replicas are still reconnecting. */
  readonly quietMs: number
  /**
   * For each pending reservation, how many of its limits have room, in their order and up to the first without. If all
   * have, it was made. undefined: it waits.
   */
  readonly decisions: readonly (number | undefined)[]
  /** In the order of the call's accounts. */
  readonly accounts: readonly AccountAnswer[]
}

interface SentAnswer {
  readonly state: 'applied' | 'ignored'
  readonly quiet: number
  readonly decisions: string
  readonly accounts: readonly {
    readonly generation: number
    readonly spent?: string
    readonly held: string
    readonly is_reached?: boolean
    readonly unread: Readonly<Record<string, MonthCounts>>
    readonly known: KnownReplicas
  }[]
}

/** The spending accounts in Redis, which all replicas share. */
export function remoteAccounts(link: Pick<RedisLink, 'run'>) {
  // The same hash tag as the epoch's key, so that one script can check the epoch and change the accounts.
  const keysOf = (names: readonly string[]): string[] => [
    REPLICAS_KEYS[0],
    ...names.map((name) => `weir:{replicas}:spending ${name}`),
  ]
  return {
    /** Resolves with undefined if Redis ignored the call: it has lost its data, or has received a later call. */
    async reserve({ epoch }: Membership, call: ReserveCall): Promise<ReserveAnswer | undefined> {
      const { accounts, pending, ...sender } = call
      const text = JSON.stringify({
        ...sender,
        epoch,
        accounts: accounts.map((report) => ({
          opening: report.opening,
          month: String(report.month),
          next_month: String(report.nextMonth),
          held: String(report.held),
          counts: Object.fromEntries(
            [...report.counts].map(([month, it]) => [month, [String(it.settled), String(it.delivered)]]),
          ),
          limit: report.limit?.toString(),
          known: report.known,
        })),
        // Lua counts from 1.
        wants: pending.map(({ amount, limits }) => [
          String(amount),
          limits.map(({ account, limit }) => [account + 1, String(limit)]),
        ]),
      })
      const keys = keysOf(accounts.map(({ name }) => name))
      const answer = JSON.parse((await link.run(spendScripts.reserve, keys, [text])) as string) as SentAnswer
      if (answer.state === 'ignored') return undefined
      return {
        quietMs: answer.quiet,
        decisions: Array.from(answer.decisions, (it) => (it === '?' ? undefined : Number(it))),
        accounts: answer.accounts.map(({ generation, spent, held, is_reached: isReached = false, unread, known }) => ({
          generation,
          spent: spent === undefined ? undefined : BigInt(spent),
          held: BigInt(held),
          isReached,
          unread: new Map(Object.entries(unread).map(([month, echo]) => [Number(month), echo])),
          known,
        })),
      }
    },
    /** Stores the sum of a month, which was read from the database after `reserve` answered. */
    async checkpoint(
      { epoch }: Membership,
      name: string,
      { generation, unread }: AccountAnswer,
      month: number,
      base: PicoAud,
    ): Promise<void> {
      const checkpoint = { epoch, generation, month: String(month), echo: unread.get(month), base: String(base) }
      await link.run(spendScripts.checkpoint, keysOf([name]), [JSON.stringify(checkpoint)])
    },
  }
}
