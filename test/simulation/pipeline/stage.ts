import type { Choices } from './plan.ts'
import type { PipelineRule, RequestSeen } from './request-seen.ts'

/** What the fake ports share. */
export interface Stage extends Choices {
  readonly requests: readonly RequestSeen[]
  /** Adds an event that happens whenever the scheduler picks it, and again as long as it returns true. */
  later(event: () => boolean): void
  /** Writes to the diary of the schedule. */
  log(seen: RequestSeen | undefined, what: string): void
  /** Reports a violation unless `holds`. It does not throw, because the pipeline might catch it. */
  demand(holds: boolean, rule: PipelineRule, seen: RequestSeen, message: string): void
  count(happening: Happening): void
}

/** What must happen often in the schedules: a simulation that never gets into trouble proves nothing. */
export const happenings = [
  'admitted',
  'queue_full',
  'workspace_queue_full',
  'overloaded',
  'too_large',
  'closed',
  'unavailable',
  'preempted',
  'completed',
  'withheld',
  'engine_failed',
  'engine_broke',
  'caller_left',
  'interrupted',
  'spend limit reached',
  'hold raised',
  'hold raised, refused',
  'hold raised for a count',
  'hold raised for a count, refused',
  'intent failed',
  'row late',
  'limits changed',
  'price changed',
  'shut down',
  'caller left',
  'caller cut off',
  'caller read slowly',
  'engine down',
  'engine unreachable',
  'engine refused',
  'engine broke before its answer',
  'second try',
  'engine past the limit',
  'engine broke off',
  'engine sent something else',
  'engine hung',
  'next stream',
  'engine spoke after the abort',
  'answer good',
  'answer useless',
  'answer failed',
] as const

export type Happening = (typeof happenings)[number]
