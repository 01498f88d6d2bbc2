import type { KeyLimits } from '../../src/workspaces/workspace.ts'

/** The limits of a key that has none. */
export const noLimits: KeyLimits = {
  requestsPerMinute: null,
  spendPerDay: null,
  spendPerMonth: null,
  allowedModels: null,
  allowedEndpoints: null,
  allowedAddresses: null,
}
