import type { ErrorCode } from '../../shared/errors.ts'
import type { Intent, Outcome, RequestRow } from '../rows.ts'

/**
 * The text of a frame: one record per line. A record is an array that begins with its kind; the order of the rest never
 * changes, and later versions only append fields.
 */
export type JournalRecord =
  /** The first record of a segment. */
  | { readonly kind: 'head'; readonly head: SegmentHead }
  | { readonly kind: 'intent'; readonly intent: Intent }
  | { readonly kind: 'row'; readonly row: RequestRow }

export interface SegmentHead {
  readonly format: 1
  /**
   * Where the segment before this one ends. Anything written to it after that was never confirmed. null if nothing
   * before this segment counts.
   */
  readonly previous: { readonly segment: number; readonly end: number } | null
}

export function headText(head: SegmentHead): string {
  return JSON.stringify(['h', head.format, head.previous])
}

export function intentText(it: Intent): string {
  return JSON.stringify([
    'i',
    it.requestId,
    it.workspaceId,
    it.keyId,
    it.model,
    it.lane,
    it.endpoint,
    it.priceVersion,
    it.maxTokens,
    it.startedAt,
  ])
}

export function rowText(it: RequestRow): string {
  return JSON.stringify([
    'r',
    it.requestId,
    it.workspaceId,
    it.keyId,
    it.model,
    it.lane,
    it.endpoint,
    it.priceVersion,
    it.maxTokens,
    it.startedAt,
    it.inputTokens,
    it.cachedInputTokens,
    it.outputTokens,
    it.images,
    it.audioMs,
    it.estimated,
    it.outcome,
    // JSON has no integers of this size.
    String(it.amount),
    it.queueWaitMs,
    it.firstTokenMs,
    it.durationMs,
    it.settledAt,
    it.httpStatus,
    it.errorCode,
  ])
}

/** The records of a frame. Throws if it was written by a newer version. */
export function recordsIn(text: string): readonly JournalRecord[] {
  return text.split('\n').map(recordOf)
}

function recordOf(line: string): JournalRecord {
  const [kind, ...values] = JSON.parse(line) as readonly unknown[]
  if (kind === 'i') return { kind: 'intent', intent: readIntent(values) }
  if (kind === 'r') return { kind: 'row', row: readRow(values) }
  const [format, previous] = values
  if (kind !== 'h' || format !== 1) {
    throw Object.assign(new Error('the journal was written by a newer version of Weir: update Weir first'), {
      code: 'ERR_DATA_DIR_NEWER',
    })
  }
  return { kind: 'head', head: { format, previous: previous as SegmentHead['previous'] } }
}

function readIntent(values: readonly unknown[]): Intent {
  const [requestId, workspaceId, keyId, model, lane, endpoint, priceVersion, maxTokens, startedAt] = values
  return {
    requestId: requestId as string,
    workspaceId: workspaceId as string,
    keyId: keyId as string,
    model: model as string,
    lane: lane as string,
    endpoint: endpoint as string,
    priceVersion: figure(priceVersion),
    maxTokens: figure(maxTokens),
    startedAt: figure(startedAt),
  }
}

function readRow(values: readonly unknown[]): RequestRow {
  const [inputTokens, cachedInputTokens, outputTokens, images, audioMs, estimated, outcome, amount, ...rest] =
    values.slice(9)
  // Records of older versions do not have the last two.
  const [queueWaitMs, firstTokenMs, durationMs, settledAt, httpStatus = null, errorCode = null] = rest
  return {
    ...readIntent(values),
    inputTokens: figure(inputTokens),
    cachedInputTokens: figure(cachedInputTokens),
    outputTokens: figure(outputTokens),
    images: figure(images),
    audioMs: figure(audioMs),
    estimated: estimated === true,
    outcome: outcome as Outcome,
    httpStatus: httpStatus as number | null,
    errorCode: errorCode as ErrorCode | null,
    amount: amountIn(String(amount)),
    queueWaitMs: figure(queueWaitMs),
    firstTokenMs: firstTokenMs === null ? null : figure(firstTokenMs),
    durationMs: figure(durationMs),
    settledAt: figure(settledAt),
  }
}

/** JSON turns NaN into null. It must not be read back as 0: no table accepts NaN, so the row is set aside. */
function figure(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}

/** An amount that is not a number is kept: no table accepts it, so the row is set aside. */
function amountIn(text: string): bigint {
  return /^-?\d+$/.test(text) ? BigInt(text) : (text as unknown as bigint)
}
