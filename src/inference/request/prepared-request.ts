import type { ImageLimits } from '../../shared/image-header.ts'
import type { JobTerms } from '../../engines/job.ts'

/**
 * A request that was checked and is ready for its engine. It is plain data, because a large body is prepared in another
 * thread: the endpoint turns it into a job, which has functions.
 */
export interface PreparedRequest<Plan> {
  readonly terms: JobTerms
  /** What is sent to the engine. */
  readonly bodies: readonly Buffer[]
  /** What else the endpoint needs to make the job. */
  readonly plan: Plan
}

/** The input of the preparation besides the request, the model and its deployment. Plain data as well. */
export interface RequestFacts {
  readonly imageLimits: ImageLimits
  /** The prefixes of system message lines that change from request to request. */
  readonly changingLines: readonly string[]
  /** The data URLs of the images that were fetched, by their addresses. */
  readonly images: ReadonlyMap<string, string>
  /** Whether generated images can be stored and linked. */
  readonly offersLinks: boolean
  /** Whether this is the thread for large bodies, where long work delays no other request. */
  readonly isInThread: boolean
}

/** An image that the caller gave by URL, and its place in the request. */
export interface RemoteImage {
  readonly url: string
  readonly param: string
}

/** What a preparation still needs: images that have to be fetched first, or the thread for large bodies. */
export interface MissingInput {
  readonly missing: readonly RemoteImage[] | 'thread'
}
