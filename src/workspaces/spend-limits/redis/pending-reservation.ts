import type { ApiError } from '../../../shared/errors.ts'
import type { PicoAud } from '../../../shared/money/money.ts'
import { limitUnknown, type SpendFigures } from '../limit.ts'

/** A request that waits until its cost is reserved. */
export interface PendingReservation {
  readonly amount: PicoAud
  readonly limit: PicoAud
  /** Resolves with undefined when the amount is reserved, or with the figures that leave no room for it. */
  resolve(refused: SpendFigures | undefined): void
  reject(error: ApiError): void
}

/** For when the limit cannot be checked. */
export function rejectUnchecked(reservations: readonly PendingReservation[]): void {
  for (const reservation of reservations) reservation.reject(limitUnknown())
}
