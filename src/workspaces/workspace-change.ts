import { parseAbn } from '../shared/money/abn.ts'
import { isEmailAddress } from '../shared/email-address.ts'
import { ApiError } from '../shared/errors.ts'
import type { SpendLimit, Workspace } from './workspace.ts'
import type { Accounts } from './accounts.ts'
import { amountIn } from './keys/key-limits.ts'

/** Changes to a workspace. Missing fields stay as they are; null clears a field. */
export interface WorkspaceChange {
  readonly requests_per_minute?: number | null
  /** A soft limit. */
  readonly tokens_per_minute?: number | null
  /** AUD per calendar month in Sydney, excluding GST. */
  readonly spend_limit?: string | null
  /** A new limit is hard by default. */
  readonly spend_limit_kind?: 'soft' | 'hard'
  /** The addressee of its invoices. */
  readonly buyer?: {
    readonly name?: string | null
    readonly abn?: string | null
    readonly address?: string | null
    /** Printed on its invoices. */
    readonly purchase_order?: string | null
    /** Where its invoices are sent. */
    readonly email?: string | null
  }
}

export async function changeWorkspace(accounts: Accounts, name: string, change: WorkspaceChange): Promise<Workspace> {
  // Validate everything before changing anything.
  const { buyer, spendLimit } = accounts.workspace(name)
  const limit = spendLimitIn(change, spendLimit)
  if (typeof change.buyer?.email === 'string') requireAddress(change.buyer.email)
  const abn = typeof change.buyer?.abn === 'string' ? abnIn(change.buyer.abn) : change.buyer?.abn
  if (change.requests_per_minute !== undefined) await accounts.setRequestsPerMinute(name, change.requests_per_minute)
  if (change.tokens_per_minute !== undefined) await accounts.setTokensPerMinute(name, change.tokens_per_minute)
  if (limit !== undefined) await accounts.setSpendLimit(name, limit)
  if (change.buyer) {
    const {
      name: buyerName = buyer.name,
      address = buyer.address,
      purchase_order: purchaseOrder = buyer.purchaseOrder,
      email = buyer.email,
    } = change.buyer
    await accounts.setBuyer(name, {
      name: buyerName,
      abn: abn === undefined ? buyer.abn : abn,
      address,
      purchaseOrder,
      email,
    })
  }
  return accounts.workspace(name)
}

/** undefined when the limit stays as it is. Amount and kind can change independently. */
function spendLimitIn(
  { spend_limit: text, spend_limit_kind: kind }: WorkspaceChange,
  current: SpendLimit | null,
): SpendLimit | null | undefined {
  if (text === undefined && kind === undefined) return undefined
  const amount = text === undefined ? current?.amount : text === null ? undefined : amountIn('spend_limit', text)
  if (amount !== undefined) return { amount, isSoft: kind === undefined ? (current?.isSoft ?? false) : kind === 'soft' }
  if (kind === undefined) return null
  throw new ApiError('invalid_value', "'spend_limit_kind' needs a spend limit. Send 'spend_limit' as well.", {
    param: 'spend_limit_kind',
  })
}

function abnIn(text: string): string {
  const abn = parseAbn(text)
  if (abn !== undefined) return abn
  throw new ApiError('invalid_value', `"${text.slice(0, 40)}" is not a valid ABN. Check its 11 digits.`, {
    param: 'buyer.abn',
  })
}

function requireAddress(text: string): void {
  if (isEmailAddress(text)) return
  throw new ApiError('invalid_value', "'buyer.email' must be one e-mail address, such as accounts@example.com.", {
    param: 'buyer.email',
  })
}
