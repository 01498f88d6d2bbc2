import { untraced } from '../../../src/server/incoming-request.ts'
import type { Reply } from '../../../src/server/reply.ts'
import { usageText } from './job.ts'
import type { RequestSeen } from './request-seen.ts'
import type { Stage } from './stage.ts'

/** The caller. It checks that the end of an answer comes once, comes last, and comes after the row. */
export class FakeReply implements Reply {
  readonly requestId: string
  readonly #stage: Stage
  readonly #seen: RequestSeen
  readonly #goneListeners = new Set<() => void>()
  #drained: (() => void) | undefined
  readonly trace = untraced('', {})
  isBlocked = false
  isOnRecord = false

  constructor(stage: Stage, seen: RequestSeen) {
    this.requestId = String(seen.index)
    this.#stage = stage
    this.#seen = seen
  }

  get isGone(): boolean {
    return this.#seen.isGone
  }

  get isCut(): boolean {
    return this.#seen.isCut
  }

  get goneListeners(): number {
    return this.#goneListeners.size
  }

  onGone(listener: () => void): () => void {
    if (this.isGone) listener()
    else this.#goneListeners.add(listener)
    return () => this.#goneListeners.delete(listener)
  }

  leave(): void {
    this.#seen.isGone = true
    this.#stage.log(this.#seen, this.isCut ? 'is cut off' : 'leaves')
    this.#stage.count(this.isCut ? 'caller cut off' : 'caller left')
    for (const listener of this.#goneListeners) listener()
    this.#goneListeners.clear()
    this.#stage.demand(this.#seen.place !== 'waiting', 'capacity', this.#seen, 'a caller that left still waits')
  }

  setWaiting(): void {}

  countTokens(): void {}

  /** There is always room. */
  holdAnswer(): void {}

  openAnswer(): void {
    if (!this.#takes('opens')) return
    this.#stage.demand(!this.#seen.isOpen, 'end', this.#seen, 'an answer is opened twice')
    this.#stage.demand(!this.#seen.row, 'end', this.#seen, 'an answer is opened after its row')
    this.#seen.isOpen = true
  }

  openStream(): void {
    this.openAnswer()
  }

  write(): boolean {
    if (!this.#takes('writes')) return true
    this.#stage.demand(this.#seen.isOpen, 'end', this.#seen, 'something is sent before the answer is opened')
    this.#stage.demand(!this.#seen.row, 'end', this.#seen, 'more is sent after the row than the end')
    if (this.isBlocked || this.#stage.chance(0.9)) return !this.isBlocked
    this.isBlocked = true
    this.#stage.count('caller read slowly')
    this.#stage.later(() => {
      this.isBlocked = false
      if (!this.isGone) this.#drained?.()
      const { latestCall } = this.#seen
      const isStuck = !this.isGone && latestCall?.end === undefined && latestCall?.isPaused === true
      this.#stage.demand(!isStuck, 'engine', this.#seen, 'the engine is not resumed')
      return false
    })
    return false
  }

  onDrain(callback: () => void): void {
    this.#drained = callback
  }

  sendAnswer(_contentType: string, body: string | Buffer | readonly Buffer[]): void {
    if (!this.#takes('is sent the answer')) return
    this.#endsWith(String(body))
  }

  end(text: string): void {
    if (!this.#takes('ends')) return
    this.#stage.demand(this.#seen.isOpen, 'end', this.#seen, 'a stream ends that was never opened')
    if (text.startsWith('usage ')) return this.#endsWith(text)
    const { settling, row } = this.#seen
    const isFit = settling === 'late' || (settling === 'durable' && row?.outcome !== 'completed')
    this.#stage.demand(isFit, 'outcome', this.#seen, `an error ends a stream whose row is ${settling}`)
    this.#seen.ending = 'error'
  }

  #takes(what: string): boolean {
    const { ending, result } = this.#seen
    this.#stage.log(this.#seen, what)
    if (this.isGone) return false
    this.#stage.demand(ending === 'none' && result === 'pending', 'end', this.#seen, `it ${what} after the end`)
    return true
  }

  #endsWith(text: string): void {
    const { settling, row } = this.#seen
    const isDurable = settling === 'durable' && row?.outcome === 'completed'
    this.#stage.demand(isDurable, 'durable', this.#seen, `the answer is complete, and its row is ${settling}`)
    if (row) this.#stage.demand(text === usageText(row), 'row', this.#seen, 'the answer shows other usage than the row')
    this.#seen.ending = 'complete'
  }
}
