import type { ApiError } from '../../core/errors.ts'
import type { PicoAud } from '../../core/money/money.ts'
import { limitUnknown, type SpendFigures } from '../limit.ts'

/** Somebody who waits for a hold. */
export interface Want {
  readonly amount: PicoAud
  readonly limit: PicoAud
  /** With the figures that have no room for it; undefined when it is held. */
  resolve(refused: SpendFigures | undefined): void
  reject(error: ApiError): void
}

/** Nobody can tell now whether there is room. */
export function refuse(wants: readonly Want[]): void {
  for (const want of wants) want.reject(limitUnknown())
}
