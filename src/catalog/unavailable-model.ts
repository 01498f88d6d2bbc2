import { bytesText } from '../shared/bytes-text.ts'
import type { Deployment, Model } from './model.ts'
import { ApiError } from '../shared/errors.ts'

/** Why a model cannot be called, as a code for programs and as the error that a request to it gets. */
export interface Unavailable {
  readonly reason: UnavailableReason
  readonly error: ApiError
}

export const unavailableReasons = [
  'model_access_denied',
  'model_not_configured',
  'not_downloaded',
  'downloading',
  'model_unavailable',
] as const

export type UnavailableReason = (typeof unavailableReasons)[number]

/** The files of a model that the service runs itself, while some are missing. */
export interface MissingFiles {
  /** The name that `weir models pull` takes. */
  readonly slug: string
  /** The size of the whole model. */
  readonly bytes: number
  /** They are being downloaded, or the service will download them. */
  readonly isArriving: boolean
  /** The operator has paused the download. */
  readonly isPaused: boolean
}

/** No deployment of the model serves the workspace. */
export function withoutDeployment({ id, dedicated }: Model): Unavailable {
  if (dedicated.length === 0) return withoutAnyEngine(id)
  const message = `${id} runs only on reserved capacity, and this workspace has none.`
  return {
    reason: 'model_access_denied',
    error: new ApiError('model_access_denied', message, { param: 'model' }),
  }
}

/** The deployment has no engine that could be called now. */
export function withoutUsableEngine(
  { id }: Model,
  { engine }: Deployment,
  missing: MissingFiles | undefined,
): Unavailable {
  if (engine === undefined) return withoutAnyEngine(id)
  if (missing) return withoutFiles(id, missing)
  const message = `Every engine of ${id} is down. Try again later.`
  return { reason: 'model_unavailable', error: new ApiError('model_unavailable', message, { param: 'model' }) }
}

function withoutAnyEngine(id: string): Unavailable {
  const message = `${id} has no engine. The operator has to add one to the catalog.`
  return { reason: 'model_not_configured', error: new ApiError('model_not_configured', message, { param: 'model' }) }
}

function withoutFiles(id: string, { slug, bytes, isArriving, isPaused }: MissingFiles): Unavailable {
  const error = (message: string): ApiError =>
    new ApiError('model_not_configured', message, { param: 'model', waitingHelps: isArriving })
  const size = bytesText(bytes)
  if (isArriving) {
    const message = `${id} is being downloaded (${size}). Try again when the download is complete.`
    return { reason: 'downloading', error: error(message) }
  }
  const message = isPaused
    ? `The download of ${id} (${size}) is paused. Resume it on the server with: weir models pull ${slug}`
    : `${id} is not downloaded (${size}). Download it on the server with: weir models pull ${slug}`
  return { reason: 'not_downloaded', error: error(message) }
}
