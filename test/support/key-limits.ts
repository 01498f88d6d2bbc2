import type { ApiKey, KeyLimits } from '../../src/workspaces/workspace.ts'

/** The limits of a key that has none, and no right to manage keys. */
export const noLimits: KeyLimits & Pick<ApiKey, 'manageKeys'> = {
  manageKeys: false,
  requestsPerMinute: null,
  tokensPerMinute: null,
  spendPerDay: null,
  spendPerMonth: null,
  allowedModels: null,
  allowedEndpoints: null,
  allowedAddresses: null,
}
