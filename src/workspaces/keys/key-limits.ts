import { BlockList, isIP } from 'node:net'
import { ApiError } from '../../shared/errors.ts'
import { parseAud, type PicoAud } from '../../shared/money/money.ts'
import type { ApiKey, KeyLimits, KeyRules } from '../workspace.ts'
import type { GivenLimits } from './key-store.ts'

/** The limits of a key: what is valid, and how requests are compared with them. */

/** Of requests and of tokens. */
export const PER_MINUTE_MAX = 100_000_000
/** Keeps sums far below the 64 bits of the ledger. */
const SPEND_MAX = 1_000_000n * 1_000_000_000_000n
/** Of models, and of addresses. */
export const ALLOWED_MAX = 100

/** The endpoints that a key can be limited to. `/messages` includes `/messages/count_tokens`. */
export const limitedEndpoints = [
  '/chat/completions',
  '/responses',
  '/messages',
  '/completions',
  '/embeddings',
  '/rerank',
  '/reranking',
  '/images/generations',
  '/audio/transcriptions',
  '/audio/translations',
] as const

const known: ReadonlySet<string> = new Set(limitedEndpoints)

/** Throws `invalid_value`. Limits that are not given are not checked. */
export function checkLimits(limits: GivenLimits): void {
  const { allowedModels: models, allowedEndpoints: endpoints, allowedAddresses } = limits
  checkRate('requests_per_minute', limits.requestsPerMinute)
  checkRate('tokens_per_minute', limits.tokensPerMinute)
  checkList('allowed_models', models)
  if (models?.some((name) => name.trim() === '' || name.length > 256)) {
    throw invalid('allowed_models', 'must have slugs of 1 to 256 characters')
  }
  checkList('allowed_endpoints', endpoints)
  const unknown = endpoints?.find((path) => !known.has(path))
  if (unknown !== undefined) throw invalid('allowed_endpoints', `may have ${limitedEndpoints.join(', ')}`)
  checkList('allowed_addresses', allowedAddresses)
  const wrong = allowedAddresses?.find((text) => networkIn(text) === undefined)
  if (wrong !== undefined) {
    throw invalid(
      'allowed_addresses',
      `must have IP addresses or networks such as 203.0.113.0/24 or 2001:db8::/32, and "${wrong.slice(0, 64)}" is neither`,
    )
  }
}

/** A limit per minute of a workspace or key. */
export function checkRate(param: string, limit: number | null | undefined): void {
  if (typeof limit !== 'number' || (Number.isInteger(limit) && limit >= 1 && limit <= PER_MINUTE_MAX)) return
  throw invalid(param, `must be an integer from 1 to ${PER_MINUTE_MAX}`)
}

/** A spend limit of a workspace or key, in AUD. */
export function amountIn(param: string, text: string): PicoAud {
  const amount = parseAud(text)
  if (amount !== undefined && amount <= SPEND_MAX) return amount
  throw invalid(param, 'must be an amount in AUD such as "500.00", at most 1000000')
}

interface NamedModel {
  readonly id: string
  readonly aliases: readonly string[]
  /** The workspaces that see the model; undefined: all. */
  readonly visibleTo?: readonly string[] | undefined
}

/** Throws `invalid_value` if an allowed model is none that the workspace can see: it is probably mistyped. */
export function requireModels({ allowedModels }: GivenLimits, models: readonly NamedModel[], workspace: string): void {
  if (!allowedModels) return
  const visible = models.filter(({ visibleTo }) => visibleTo?.includes(workspace) !== false)
  const names = visible.flatMap(({ id, aliases }) => [id, ...aliases])
  const unknown = allowedModels.find((name) => !names.includes(name))
  if (unknown === undefined) return
  const part = unknown.slice(unknown.lastIndexOf('/') + 1, 256).toLowerCase()
  const close = names.filter((name) => name.toLowerCase().includes(part) || part.includes(name.toLowerCase()))
  const hint = close.length === 0 ? '' : ` Did you mean ${close.slice(0, 3).join(' or ')}?`
  throw new ApiError('invalid_value', `'allowed_models' has "${unknown.slice(0, 256)}", which is no model.${hint}`, {
    param: 'allowed_models',
  })
}

function checkList(param: string, list: readonly string[] | null | undefined): void {
  if (!list || (list.length >= 1 && list.length <= ALLOWED_MAX)) return
  throw invalid(param, `must have 1 to ${ALLOWED_MAX} entries`)
}

function invalid(param: string, rule: string): ApiError {
  return new ApiError('invalid_value', `'${param}' ${rule}.`, { param })
}

/** undefined if the key has no limits: its requests are compared with nothing. */
export function rulesOf(key: KeyLimits & Pick<ApiKey, 'id'>): KeyRules | undefined {
  const { id, requestsPerMinute, tokensPerMinute, spendPerDay, spendPerMonth } = key
  const { allowedModels, allowedEndpoints, allowedAddresses } = key
  const numbers = [requestsPerMinute, tokensPerMinute, spendPerDay, spendPerMonth]
  const lists = [allowedModels, allowedEndpoints, allowedAddresses]
  if ([...numbers, ...lists].every((limit) => limit === null)) return undefined
  const models = allowedModels && new Set(allowedModels)
  const endpoints = allowedEndpoints && new Set(allowedEndpoints)
  const addresses = allowedAddresses && blockListOf(allowedAddresses)
  return {
    rate: requestsPerMinute === null ? undefined : { id, limit: requestsPerMinute },
    tokenRate: tokensPerMinute === null ? undefined : { id, limit: tokensPerMinute },
    spend: { perDay: spendPerDay ?? undefined, perMonth: spendPerMonth ?? undefined },
    allowsModel: ({ id: slug, aliases }) => !models || models.has(slug) || aliases.some((alias) => models.has(alias)),
    allowsEndpoint: (path) => !endpoints || endpoints.has(path),
    allowsAddress(address) {
      if (!addresses) return true
      const family = familyOf(address)
      return family !== undefined && addresses.check(address, family)
    },
  }
}

type KeyScope = KeyLimits & Pick<ApiKey, 'expiresAt' | 'manageKeys'>

/** The field in which a key may do more than another one; undefined if it may do no more. */
export function widerThan(key: KeyScope, other: KeyScope): string | undefined {
  const isWiderList = (list: readonly string[] | null, whole: readonly string[] | null): boolean =>
    whole !== null && list?.every((it) => whole.includes(it)) !== true
  const isWider = <Value extends number | bigint>(value: Value | null, most: Value | null): boolean =>
    most !== null && (value === null || value > most)
  if (key.manageKeys && !other.manageKeys) return 'manage_keys'
  if (isWider(key.expiresAt, other.expiresAt)) return 'expires_at'
  if (isWider(key.requestsPerMinute, other.requestsPerMinute)) return 'requests_per_minute'
  if (isWider(key.tokensPerMinute, other.tokensPerMinute)) return 'tokens_per_minute'
  if (isWider(key.spendPerDay, other.spendPerDay)) return 'spend_per_day'
  if (isWider(key.spendPerMonth, other.spendPerMonth)) return 'spend_per_month'
  if (isWiderList(key.allowedModels, other.allowedModels)) return 'allowed_models'
  if (isWiderList(key.allowedEndpoints, other.allowedEndpoints)) return 'allowed_endpoints'
  return areWithin(key.allowedAddresses, other.allowedAddresses) ? undefined : 'allowed_addresses'
}

function areWithin(texts: readonly string[] | null, whole: readonly string[] | null): boolean {
  if (whole === null) return true
  const networks = whole.flatMap((text) => networkIn(text) ?? [])
  return texts?.every((text) => networks.some((network) => isWithin(networkIn(text), network))) ?? false
}

function isWithin(network: Network | undefined, whole: Network): boolean {
  if (network?.family !== whole.family || network.prefix < whole.prefix) return false
  const list = new BlockList()
  list.addSubnet(whole.address, whole.prefix, whole.family)
  return list.check(network.address, network.family)
}

function blockListOf(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const { address, prefix, family } of texts.flatMap((text) => networkIn(text) ?? [])) {
    list.addSubnet(address, prefix, family)
  }
  return list
}

interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** An address alone is a network of one. */
function networkIn(text: string): Network | undefined {
  const [address = '', length, ...more] = text.split('/')
  const family = familyOf(address)
  if (family === undefined || more.length > 0) return undefined
  const longest = family === 'ipv4' ? 32 : 128
  const prefix = length === undefined ? longest : Number(length)
  const isPrefix = Number.isInteger(prefix) && prefix >= 0 && prefix <= longest
  return isPrefix && (length === undefined || length === String(prefix)) ? { address, prefix, family } : undefined
}

/** An address with a zone, such as fe80::1%eth0, means something on one machine only. */
function familyOf(address: string): Network['family'] | undefined {
  const version = address.includes('%') ? 0 : isIP(address)
  return version === 0 ? undefined : version === 4 ? 'ipv4' : 'ipv6'
}
