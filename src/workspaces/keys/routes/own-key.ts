import { Type } from 'typebox'
import { ApiError } from '../../../shared/errors.ts'
import { formatAud, type PicoAud } from '../../../shared/money/money.ts'
import { sydneyDayPeriod, sydneyMonth } from '../../../shared/money/sydney-time.ts'
import type { Clock } from '../../../shared/clock.ts'
import { nullable } from '../../../server/common-schema.ts'
import { keyRoute, type KeyRoute } from '../../../server/key-route.ts'
import { jsonResponse } from '../../../server/route.ts'
import type { Accounts } from '../../accounts.ts'
import type { Allowance } from '../../rate-limits/rate-limit.ts'
import type { SpendView } from '../../spend-limits/spending.ts'
import { redactedKey } from '../api-key.ts'
import { limitsExample, limitSchemas, redactedKeySchema } from './keys.ts'

export interface OwnKeyParts {
  readonly accounts: Accounts
  readonly spending: SpendView
  readonly clock: Clock
}

const resetsAt = Type.String({ description: 'When the count starts again.' })
const rateSchema = Type.Object({
  limit: Type.Integer(),
  used: Type.Integer({ description: 'In this minute, including this request.' }),
  remaining: Type.Integer(),
  resets_at: resetsAt,
})
const tokenSchema = Type.Object({
  limit: Type.Integer(),
  used: Type.Integer({ description: 'By requests that were settled in this minute, at most the limit.' }),
  remaining: Type.Integer(),
  resets_at: resetsAt,
})
const spendSchema = Type.Object({
  limit: Type.String({ description: 'AUD, excluding GST.' }),
  spent: Type.String({ description: 'What finished requests cost.' }),
  remaining: Type.String({ description: 'Less what running requests may still cost.' }),
  resets_at: resetsAt,
})

const schema = Type.Object({
  object: Type.Literal('key'),
  id: Type.String(),
  redacted: redactedKeySchema,
  name: nullable(Type.String()),
  workspace: Type.String(),
  created: Type.String(),
  expires_at: nullable(Type.String(), 'When the key expires; null if it does not.'),
  allowed_models: limitSchemas.allowed_models,
  allowed_endpoints: limitSchemas.allowed_endpoints,
  allowed_addresses: limitSchemas.allowed_addresses,
  requests_per_minute: nullable(rateSchema, "null: only the workspace's limit applies, as for the limits below."),
  tokens_per_minute: nullable(tokenSchema),
  spend_per_day: nullable(spendSchema),
  spend_per_month: nullable(spendSchema),
  workspace_limits: Type.Object({
    requests_per_minute: rateSchema,
    tokens_per_minute: nullable(tokenSchema, 'null: there is no such limit.'),
    spend_per_month: nullable(
      Type.Object({ ...spendSchema.properties, kind: Type.Enum(['soft', 'hard']) }),
      'A soft limit is only reported. null: there is none.',
    ),
  }),
})

const rateExample = { limit: 60, used: 3, remaining: 57, resets_at: '2026-11-15T22:11:00.000Z' }
const spendExample = { limit: '5.00', spent: '1.25', remaining: '3.75', resets_at: '2026-11-16T13:00:00.000Z' }
const { allowed_models, allowed_endpoints, allowed_addresses } = limitsExample
const example = {
  object: 'key',
  id: 'key_7f3a9c21',
  redacted: 'weir_…x7Qa',
  name: 'website',
  workspace: 'acme',
  created: '2026-11-15T22:04:05.000Z',
  expires_at: null,
  allowed_models,
  allowed_endpoints,
  allowed_addresses,
  requests_per_minute: rateExample,
  tokens_per_minute: null,
  spend_per_day: spendExample,
  spend_per_month: null,
  workspace_limits: {
    requests_per_minute: { ...rateExample, limit: 600, remaining: 597 },
    tokens_per_minute: { ...rateExample, limit: 100_000, used: 1500, remaining: 98_500 },
    spend_per_month: null,
  },
}

/** What a caller may know of its own key. */
export function ownKeyRoute({ accounts, spending, clock }: OwnKeyParts): KeyRoute {
  return keyRoute({
    method: 'GET',
    path: '/key',
    id: 'ownKey',
    summary: 'This key',
    description:
      'The key that sends the request: what it may do, its limits and those of its workspace, and what is left of them. It counts as one request and costs nothing.',
    response: jsonResponse(schema, example),
    errors: ['not_found'],
    async answer({ exchange, caller: { workspace, keyId, rules } }) {
      const key = await accounts.key(keyId)
      if (!key) throw new ApiError('not_found', 'You are signed in without a key.')
      const ofWorkspace = exchange.rate?.allowanceOfSubject()
      const ofKey = exchange.rate?.allowanceOfKey()
      const tokensOfWorkspace = exchange.rate?.tokens?.allowanceOfSubject()
      const tokensOfKey = exchange.rate?.tokens?.allowanceOfKey()
      const spentByKey = await spending.spentByKey({ id: keyId, ...rules?.spend })
      const [day, month] = [sydneyDayPeriod(clock.now()).to, sydneyMonth(clock.now()).to]
      const { spendLimit } = workspace
      exchange.sendJson(
        JSON.stringify({
          object: 'key',
          id: key.id,
          redacted: redactedKey(key.ending),
          name: key.name,
          workspace: workspace.name,
          created: new Date(key.createdAt).toISOString(),
          expires_at: key.expiresAt === null ? null : new Date(key.expiresAt).toISOString(),
          allowed_models: key.allowedModels,
          allowed_endpoints: key.allowedEndpoints,
          allowed_addresses: key.allowedAddresses,
          requests_per_minute: ofKey ? rateView(ofKey) : null,
          tokens_per_minute: tokensOfKey ? rateView(tokensOfKey) : null,
          spend_per_day: spendView(rules?.spend.perDay, spentByKey.day, day),
          spend_per_month: spendView(rules?.spend.perMonth, spentByKey.month, month),
          workspace_limits: {
            requests_per_minute: ofWorkspace && rateView(ofWorkspace),
            tokens_per_minute: tokensOfWorkspace ? rateView(tokensOfWorkspace) : null,
            spend_per_month: spendLimit && {
              ...spendView(spendLimit.amount, await spending.spent(workspace.id), month),
              kind: spendLimit.isSoft ? 'soft' : 'hard',
            },
          },
        }),
      )
    },
  })
}

function rateView({ limit, remaining, resetAt }: Allowance): object {
  return { limit, used: limit - remaining, remaining, resets_at: new Date(resetAt * 1000).toISOString() }
}

function spendView(limit: PicoAud | undefined, spent: PicoAud | undefined, resets: number): object | null {
  if (limit === undefined || spent === undefined) return null
  const remaining = limit > spent ? limit - spent : 0n
  return {
    limit: formatAud(limit),
    spent: formatAud(spent),
    remaining: formatAud(remaining),
    resets_at: new Date(resets).toISOString(),
  }
}
