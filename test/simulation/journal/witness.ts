import type { Happening, StoreState } from './history.ts'

export type Rule =
  /** A row whose caller was told that it is durable is there, as it was. */
  | 'nothing lost'
  /** Each request has one row at most, and no row comes from nowhere. */
  | 'nothing doubled'
  /** A caller whose answer was withheld pays nothing once that is durable. */
  | 'nothing overbilled'
  /** A request that was on record and has no row gets one, at nothing. */
  | 'nothing forgotten'
  /** A crash is not taken for a disk that lost something. */
  | 'no false alarm'
  /** The service starts after every crash, and can go on. */
  | 'goes on'
  /** Recovery reads each segment a few times at most. */
  | 'bounded'

export class JournalViolation extends Error {
  readonly rule: Rule

  constructor(rule: Rule, message: string) {
    super(`${rule}: ${message}`)
    this.rule = rule
  }
}

interface Request {
  outcome: 'nothing' | 'settled' | 'withheld'
  /** Settled, so a row may be in the journal. */
  isAsked: boolean
  /** On record: durable, or at least out of the process. */
  intent: 'nowhere' | 'handed over' | 'durable'
  isLateDurable: boolean
}

/** Follows what callers were told and what became durable, and checks what recovery makes of it. */
export class JournalWitness {
  readonly #requests = new Map<string, Request>()

  follow(it: Happening): void {
    if (it.kind === 'noted') this.#requests.set(it.id, newRequest())
    if (it.kind === 'asked') this.#of(it.id).isAsked = true
    if (it.kind === 'settled' || it.kind === 'withheld') this.#of(it.id).outcome = it.kind
    // It may have spoiled what was only handed over. It is not billed, and it is written again.
    if (it.kind === 'failed' || (it.kind === 'write' && it.isCut)) {
      for (const request of this.#requests.values()) if (request.intent === 'handed over') request.intent = 'nowhere'
    }
    if (it.kind !== 'synced' && it.kind !== 'handed over') return
    for (const record of it.records) {
      if (record.kind === 'head') continue
      const request = this.#of(record.kind === 'intent' ? record.intent.requestId : record.row.requestId)
      if (it.kind === 'synced') request.intent = 'durable'
      else if (request.intent === 'nowhere') request.intent = 'handed over'
      if (it.kind !== 'synced' || record.kind !== 'row') continue
      if (record.row.outcome === 'withheld') request.isLateDurable = true
      else if (request.outcome === 'withheld') {
        throw new JournalViolation('nothing overbilled', `${record.row.requestId} was withheld, and then billed`)
      }
    }
  }

  #of(id: string): Request {
    let request = this.#requests.get(id)
    if (!request) this.#requests.set(id, (request = newRequest()))
    return request
  }

  /** `isWhole`: whether everything that was handed over has survived. */
  check({ rows, aside }: StoreState, isWhole: boolean): void {
    for (const [id, request] of this.#requests) {
      const row = rows.get(id)
      const refused = aside.get(id)
      const found = row ?? refused
      if (row && refused) throw new JournalViolation('nothing doubled', `${id} is in the ledger and set aside`)
      if (request.outcome === 'settled' && found?.outcome !== 'completed') {
        throw new JournalViolation('nothing lost', `${id} was settled, and is ${found?.outcome ?? 'not there'}`)
      }
      if (request.isLateDurable && found?.outcome !== 'withheld') {
        throw new JournalViolation('nothing overbilled', `${id} was withheld, and is ${found?.outcome ?? 'not there'}`)
      }
      if (found?.outcome === 'interrupted' && found.amount !== 0n) {
        throw new JournalViolation('nothing overbilled', `${id} was interrupted, and costs ${found.amount}`)
      }
      if (found && found.outcome !== 'interrupted' && !request.isAsked) {
        throw new JournalViolation('nothing doubled', `${id} has a row, and was never settled`)
      }
    }
    for (const [id, { intent }] of this.#requests) {
      const isOnRecord = intent === 'durable' || (isWhole && intent === 'handed over')
      if (isOnRecord && !rows.has(id) && !aside.has(id)) {
        throw new JournalViolation('nothing forgotten', `${id} was on record`)
      }
    }
    for (const id of [...rows.keys(), ...aside.keys()]) {
      if (!this.#requests.has(id)) throw new JournalViolation('nothing doubled', `no request has the id ${id}`)
    }
  }
}

const newRequest = (): Request => ({ outcome: 'nothing', isAsked: false, intent: 'nowhere', isLateDurable: false })
