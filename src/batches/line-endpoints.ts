import type { Job } from '../engines/job.ts'
import type { ApiError } from '../shared/errors.ts'
import type { RequestMemory } from '../server/body.ts'
import type { TurnClient } from '../shared/turns.ts'
import type { Caller } from '../workspaces/workspace.ts'
import type { LineRequest } from './lines.ts'

/** The endpoints that lines can call. */
export interface LineEndpoints {
  /** Below /v1. */
  readonly urls: readonly string[]
  /** Throws what is wrong with a request, without fetching anything that it links to. */
  check(request: LineRequest, caller: Caller, client: LineClient): Promise<void>
  /** The job of a request. Throws what is wrong with it. */
  jobOf(request: LineRequest, caller: Caller, client: LineClient): Promise<Job>
  /** The error in the format of its endpoint. */
  errorBody(url: string, error: ApiError, requestId: string): object
}

/** The sender of a line, as far as reading it is concerned. */
export type LineClient = TurnClient & RequestMemory
