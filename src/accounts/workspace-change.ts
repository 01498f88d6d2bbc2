import { parseAbn } from '../core/money/abn.ts'
import { ApiError } from '../core/errors.ts'
import { parseAud } from '../core/money/money.ts'
import type { SpendLimit, Workspace } from '../ports/accounts.ts'
import type { Accounts } from './accounts.ts'

/** What can be changed of a workspace. What is left out stays; null takes it away. */
export interface WorkspaceChange {
  readonly requests_per_minute?: number | null
  /** AUD for a month in Sydney, excluding GST. */
  readonly spend_limit?: string | null
  readonly spend_limit_kind?: 'soft' | 'hard'
  /** Who its invoices are made out to. */
  readonly buyer?: { readonly name?: string | null; readonly abn?: string | null; readonly address?: string | null }
}

/** Sums of a workspace stay far below what the ledger's 64 bits hold. */
const MOST = 1_000_000n * 1_000_000_000_000n

export async function changeWorkspace(accounts: Accounts, name: string, change: WorkspaceChange): Promise<Workspace> {
  // All of it is checked before any of it is done.
  const limit = spendLimitIn(change)
  const { buyer } = accounts.workspace(name)
  const abn = typeof change.buyer?.abn === 'string' ? abnIn(change.buyer.abn) : change.buyer?.abn
  if (change.requests_per_minute !== undefined) await accounts.setRequestsPerMinute(name, change.requests_per_minute)
  if (limit !== undefined) await accounts.setSpendLimit(name, limit)
  if (change.buyer) {
    const { name: buyerName = buyer.name, address = buyer.address } = change.buyer
    await accounts.setBuyer(name, { name: buyerName, abn: abn === undefined ? buyer.abn : abn, address })
  }
  return accounts.workspace(name)
}

function spendLimitIn({ spend_limit: text, spend_limit_kind: kind }: WorkspaceChange): SpendLimit | null | undefined {
  if (text === undefined || text === null) return text
  const amount = parseAud(text)
  if (amount !== undefined && amount <= MOST) return { amount, isSoft: kind === 'soft' }
  throw new ApiError('invalid_value', "'spend_limit' must be AUD in plain decimals, at most 1000000.", {
    param: 'spend_limit',
  })
}

function abnIn(text: string): string {
  const abn = parseAbn(text)
  if (abn !== undefined) return abn
  throw new ApiError('invalid_value', `The check digits of the ABN "${text.slice(0, 40)}" do not fit.`, {
    param: 'buyer.abn',
  })
}
