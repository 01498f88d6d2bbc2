import type { Decision, LaneLimits, LaneStatus } from './core/admission.ts'
import type { ApiError } from './core/errors.ts'
import type { Allowance } from './core/rate-window.ts'
import type { AnswerHeaders, EngineRequest } from './core/job.ts'
import type { InvoiceDocument } from './core/invoice-document.ts'
import type { Intent, LedgerRow } from './core/ledger.ts'
import type { PicoAud } from './core/money.ts'
import type { GroupedSums, Grouping, PricedSums, UsageSums } from './core/usage-sums.ts'
import type { PriceList } from './core/rating.ts'

/** Time from outside, so that the core and the tests can do without it. */
export interface Clock {
  /** Unix time in milliseconds: for windows, stamps and invoices. */
  now(): number
  /** Milliseconds that never jump: for waits and durations. */
  monotonic(): number
}

/** One caller's place in a lane, from arrival to the end of its engine call. */
export interface Ticket {
  /** Gives the place back: leaves the queue, or releases the charge. Only the first call counts. */
  leave(): void
}

/** Finite capacity, handed out first come, first served. A lane is one deployment of a model. */
export interface Admission {
  /** Opens a lane, or changes the limits of an open one without evicting anybody. */
  setLimits(lane: string, limits: LaneLimits): void
  /** Closes a lane to newcomers of the catalog; it disappears when the last request has left. */
  retire(lane: string): void
  /**
   * Joins a lane with an estimated cost in tokens. `decided` is called exactly once, possibly before
   * `enter` returns, and never after `leave`.
   */
  enter(lane: string, cost: number, decided: (decision: Decision) => void): Ticket
  /** Every open lane at one instant. */
  status(): ReadonlyMap<string, LaneStatus>
  /** Refuses whoever waits or arrives from now on with `closed`; admitted work goes on. */
  close(): void
}

export interface Workspace {
  readonly id: string
  readonly name: string
  /** null: the service's default applies. */
  readonly requestsPerMinute: number | null
  readonly createdAt: number
  readonly spendLimit: SpendLimit | null
  readonly buyer: Buyer
}

/** What a workspace may spend in a month in Sydney, excluding GST. */
export interface SpendLimit {
  readonly amount: PicoAud
  /** Only told of, where a hard one refuses. */
  readonly isSoft: boolean
}

/** Who invoices are made out to; null: the workspace's name, or nothing. */
export interface Buyer {
  readonly name: string | null
  readonly abn: string | null
  readonly address: string | null
}

export interface ApiKey {
  readonly id: string
  readonly workspaceId: string
  /** SHA-256 of the key; the key itself is shown once and kept nowhere. */
  readonly hash: string
  readonly createdAt: number
  readonly revokedAt: number | null
}

/** A price that applied from a moment on: for everybody, or for one workspace. Never rewritten. */
export interface PriceVersion {
  readonly id: number
  readonly model: string
  readonly workspaceId: string | null
  /** null: the workspace's own price ended. */
  readonly prices: PriceList | null
  readonly effectiveFrom: number
}

export interface AccountsSnapshot {
  readonly workspaces: readonly Workspace[]
  readonly keys: readonly ApiKey[]
  /** In the order they were made. */
  readonly prices: readonly PriceVersion[]
}

export interface LedgerBatch {
  readonly intents: readonly Intent[]
  readonly rows: readonly LedgerRow[]
}

/** Settled in [from, to), oldest first. */
export interface UsageQuery {
  readonly workspaceId: string
  readonly from: number
  readonly to: number
  readonly limit: number
  /** Only what comes behind this row. */
  readonly after?: { readonly settledAt: number; readonly requestId: string } | undefined
  readonly model?: string | undefined
  readonly priceVersions?: readonly number[] | undefined
  /** Only the rows of an adjustment note, or with '' those of no such note. */
  readonly creditNote?: string | undefined
}

/** Sums over [from, to), both at a full hour. */
export interface SumsQuery {
  /** undefined: of all workspaces. */
  readonly workspaceId?: string | undefined
  readonly from: number
  readonly to: number
  readonly groupBy: Grouping
  /** Without the rows of adjustment notes, where it is ''. */
  readonly creditNote?: '' | undefined
  readonly limit: number
  /** Only groups behind this one. */
  readonly after?: string | number | undefined
}

/** What was used, row by row or summed up. */
export interface UsageStore {
  usage(query: UsageQuery): Promise<readonly LedgerRow[]>
  usageRow(requestId: string): Promise<LedgerRow | undefined>
  /** In the order of the groups. */
  usageSums(query: SumsQuery): Promise<readonly GroupedSums[]>
  usageTotal(query: Omit<SumsQuery, 'limit' | 'after'>): Promise<UsageSums>
  /** Over whole days in Sydney: of an adjustment note, or with '' of rows in none. */
  pricedSums(workspaceId: string, from: number, to: number, creditNote: string): Promise<readonly PricedSums[]>
  /** Where the sums that are kept differ from those of the rows; empty when all is well. */
  wrongSums(workspaceId: string): Promise<readonly string[]>
}

export interface IssuedInvoice {
  readonly number: string
  readonly kind: InvoiceDocument['kind']
  /** Of its kind, from 1 without a gap. */
  readonly sequence: number
  readonly sellerAbn: string
  readonly workspaceId: string
  readonly period: string
  readonly periodFrom: number
  readonly periodTo: number
  readonly issuedAt: number
  readonly document: InvoiceDocument
}

/** The rows of a closed month that an adjustment note takes back. */
export interface Reversal {
  /** null: all that have not been taken back. */
  readonly requestIds: readonly string[] | null
  readonly reason: string
}

/** Issued invoices and adjustment notes. False: it was not the next one, or the month has other rows than expected. */
export interface InvoiceStore {
  invoices(filter?: { workspaceId?: string; number?: string }): Promise<readonly IssuedInvoice[]>
  issueInvoice(invoice: IssuedInvoice, rowsExpected: number, capacity: readonly LedgerRow[]): Promise<boolean>
  issueNote(note: IssuedInvoice, rowsExpected: number, reversal: Reversal): Promise<boolean>
  /** 0 where none of the kind was issued. */
  lastSequence(kind: IssuedInvoice['kind']): Promise<number>
  /** The ABNs that invoices were issued under. */
  sellers(): Promise<readonly string[]>
  /** Of the rows of a closed month that a note would take back. */
  reversibleSums(
    workspaceId: string,
    from: number,
    to: number,
    requestIds: readonly string[] | null,
  ): Promise<readonly PricedSums[]>
}

/** Requests of one lane that arrived in [from, to), in the order of their admission. */
export interface ArrivalsQuery {
  readonly lane: string
  readonly from: number
  readonly to: number
  readonly limit: number
  readonly offset: number
}

export interface RecordedArrival {
  /** Unix ms: admission less the wait for it. */
  readonly arrivedAt: number
  readonly inputTokens: number
  readonly maxTokens: number
  readonly outputTokens: number
}

/** What must outlive the process. Every promise resolves only when its effect is durable. */
export interface Store extends UsageStore, InvoiceStore {
  accounts(): Promise<AccountsSnapshot>
  createWorkspace(workspace: Pick<Workspace, 'id' | 'name' | 'requestsPerMinute' | 'createdAt'>): Promise<void>
  setRequestsPerMinute(workspaceId: string, limit: number | null): Promise<void>
  setSpendLimit(workspaceId: string, limit: SpendLimit | null): Promise<void>
  setBuyer(workspaceId: string, buyer: Buyer): Promise<void>
  createKey(key: ApiKey): Promise<void>
  revokeKey(id: string, at: number): Promise<void>
  addPriceVersion(version: Omit<PriceVersion, 'id'>): Promise<number>
  writeLedger(batch: LedgerBatch): Promise<void>
  /** Settles what an earlier process left open, at nothing. Returns how many there were. */
  recoverIntents(now: number): Promise<number>
  arrivals(query: ArrivalsQuery): Promise<readonly RecordedArrival[]>
  close(): Promise<void>
}

/** The ledger as a request sees it. */
export interface Ledger {
  /** Resolves when the intent is durable; rejects when it cannot be recorded now. */
  open(intent: Intent): Promise<void>
  /**
   * Resolves when the row is durable. A rejection means only that the caller should wait no longer; what is
   * written then is `late`, where it is given.
   */
  settle(row: LedgerRow, late?: LedgerRow): Promise<void>
  status(): { readonly healthy: boolean; readonly waiting: number; readonly lagMs: number }
  /** Resolves when nothing is waiting to be written. */
  flush(): Promise<void>
}

/** Spend limits. What a request may come to is held while it runs, so that many at once cannot overdraw. */
export interface Spending {
  /** Throws `spend_limit_exceeded` where a hard limit has no room for it. */
  hold(workspace: Workspace, most: PicoAud): Hold
}

export interface Hold {
  /** Ends it with what the request came to. Only the first call counts. */
  settle(amount: PicoAud): void
}

/** Requests per minute, for workspaces and for addresses that showed no good key. */
export interface RateLimiter {
  /** Counts one request; false where the window has no room for it. */
  take(subject: string, limit: number): Promise<boolean>
  /** What the headers say, as of now. */
  allowance(subject: string, limit: number): Allowance
}

/** One call of an engine. */
export interface EngineCall extends EngineRequest {
  readonly receiver: EngineReceiver
}

/** Takes an engine's good answer as it comes. Refusals and failures never get here. */
export interface EngineReceiver {
  /** The engine has answered: from here on no other engine is asked. */
  start(headers: AnswerHeaders): void
  data(chunk: Buffer): void
}

export type CallEnd =
  | { readonly kind: 'ended' }
  | { readonly kind: 'aborted' }
  /** `started`: the receiver had begun to get an answer. */
  | { readonly kind: 'failed'; readonly error: ApiError; readonly started: boolean }

export interface RunningCall {
  /** Resolves, and never rejects, when nothing of the call is left at the engine. */
  readonly ended: Promise<CallEnd>
  /** An engine was sent the request and has not refused it. */
  isWithEngine(): boolean
  abort(): void
  pause(): void
  resume(): void
}

/** The engines behind one deployment. */
export interface Engine {
  /** False while every address of it is known to be down. */
  usable(): boolean
  /**
   * For a request that will be run here, perhaps after a wait in the queue: the engine stays open for it,
   * even if the catalog has replaced it by then. Returns what lets go of it.
   */
  hold(): () => void
  run(call: EngineCall): RunningCall
  /** Lets whoever holds it finish, then closes the connections. */
  close(): Promise<void>
}

/** Keeps files for a while, so that an answer can be a link. */
export interface FileStore {
  /** Resolves to a link that opens for a limited time, when the file is where the link leads. */
  put(bytes: Buffer, contentType: string): Promise<string>
  /** What a link leads to, where links lead back to Weir itself; `query` is the part behind the mark. */
  open?(name: string, query: string): Promise<OpenedFile>
  close(): Promise<void>
}

export interface OpenedFile {
  readonly contentType: string
  readonly length: number
  readonly secondsLeft: number
  /** Whoever gets it reads it to the end or destroys it. */
  readonly stream: NodeJS.ReadableStream & { destroy(): unknown }
}

/** Bytes that can be read anywhere, a little at a time. */
export interface ByteSource {
  readonly length: number
  /** Fills the buffer from `position` on, as far as there are bytes; resolves to how many there were. */
  read(into: Buffer, position: number): Promise<number>
}

/** An upload on disk, for as long as its request lives. */
export interface SpooledFile extends ByteSource {
  append(chunks: readonly Buffer[]): Promise<void>
  /** Gives the room back. Only the first call counts. */
  close(): Promise<void>
}

export interface Spool {
  open(): Promise<SpooledFile>
}

/** What an upload was found to hold. */
export interface MeasuredAudio {
  readonly extension: string
  readonly contentType: string
  /** undefined where its length cannot be told. */
  readonly durationMs: number | undefined
}

/** Who a request comes from. */
export interface Caller {
  readonly workspace: Workspace
  readonly keyId: string
}

/** The way back to the caller. */
export interface Reply {
  readonly requestId: string
  /** The caller has gone away. */
  readonly isGone: boolean
  /** It was the service that cut the connection, at the end of its time to stop. */
  readonly isCut: boolean
  /** Called when the caller goes away, at once if that has happened. The last one set counts. */
  onGone(callback: () => void): void
  /** Opens an answer that is sent while it comes, with status 200. */
  openAnswer(contentType: string, headers: Record<string, string>): void
  /** A whole answer, with status 200; of one that was opened, what is left of it. */
  sendAnswer(contentType: string, body: string | Buffer | readonly Buffer[], headers: Record<string, string>): void
  /** Opens an event stream; nothing reaches the caller before. */
  openStream(headers: Record<string, string>): void
  /** Bytes, or latin1 text. False: wait for `onDrain`. */
  write(piece: string | Buffer): boolean
  onDrain(callback: () => void): void
  end(text: string): void
}
