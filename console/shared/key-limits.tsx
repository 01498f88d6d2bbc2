import { useState } from 'preact/hooks'
import { count } from './format.ts'
import { Field } from './form.tsx'

/** The limits of a key: in words, and as fields of a form. */

/** The endpoints that a key can be limited to. */
const endpoints = [
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
type Endpoint = (typeof endpoints)[number]

/** null: no limit. */
export interface KeyLimits {
  readonly manage_keys: boolean
  readonly requests_per_minute: number | null
  readonly tokens_per_minute: number | null
  /** AUD. */
  readonly spend_per_day: string | null
  readonly spend_per_month: string | null
  readonly allowed_models: readonly string[] | null
  readonly allowed_endpoints: readonly Endpoint[] | null
  readonly allowed_addresses: readonly string[] | null
}

/** What a key is limited to, in a few words; the dialog has the rest. */
export function LimitsInWords({ of: key }: { of: KeyLimits }) {
  const some = (list: readonly string[] | null, one: string, more: string): string[] =>
    list === null ? [] : [`${count(list.length)} ${list.length === 1 ? one : more}`]
  const limits = [
    ...(key.requests_per_minute === null ? [] : [`${count(key.requests_per_minute)} requests per minute`]),
    ...(key.tokens_per_minute === null ? [] : [`${count(key.tokens_per_minute)} tokens per minute`]),
    ...(key.spend_per_day === null ? [] : [`A$${key.spend_per_day} a day`]),
    ...(key.spend_per_month === null ? [] : [`A$${key.spend_per_month} a month`]),
    ...some(key.allowed_models, 'model', 'models'),
    ...some(key.allowed_endpoints, 'endpoint', 'endpoints'),
    ...some(key.allowed_addresses, 'address or network', 'addresses or networks'),
  ]
  if (limits.length === 0 && !key.manage_keys) return null
  return (
    <>
      {key.manage_keys && <small class="soft block">Manages keys</small>}
      {limits.map((limit) => (
        <small key={limit} class="soft block">
          Only {limit}
        </small>
      ))}
    </>
  )
}

/** The limits as they are typed: one entry of a list on each line. */
interface TypedLimits {
  readonly manages: boolean
  readonly rate: string
  readonly tokens: string
  readonly perDay: string
  readonly perMonth: string
  readonly models: string
  readonly endpoints: readonly Endpoint[]
  readonly addresses: string
}

export function typedLimits(key: KeyLimits | undefined): TypedLimits {
  return {
    manages: key?.manage_keys ?? false,
    rate: String(key?.requests_per_minute ?? ''),
    tokens: String(key?.tokens_per_minute ?? ''),
    perDay: key?.spend_per_day ?? '',
    perMonth: key?.spend_per_month ?? '',
    models: (key?.allowed_models ?? []).join('\n'),
    endpoints: key?.allowed_endpoints ?? [],
    addresses: (key?.allowed_addresses ?? []).join('\n'),
  }
}

/** Those that differ. A limit that was emptied is removed. */
export function changedLimits(before: TypedLimits, now: TypedLimits): Partial<KeyLimits> {
  return {
    ...(now.manages === before.manages ? {} : { manage_keys: now.manages }),
    ...(now.rate === before.rate ? {} : { requests_per_minute: now.rate === '' ? null : Number(now.rate) }),
    ...(now.tokens === before.tokens ? {} : { tokens_per_minute: now.tokens === '' ? null : Number(now.tokens) }),
    ...(now.perDay === before.perDay ? {} : { spend_per_day: amountIn(now.perDay) }),
    ...(now.perMonth === before.perMonth ? {} : { spend_per_month: amountIn(now.perMonth) }),
    ...(now.models === before.models ? {} : { allowed_models: linesIn(now.models) }),
    ...(now.endpoints.join() === before.endpoints.join()
      ? {}
      : { allowed_endpoints: now.endpoints.length === 0 ? null : now.endpoints }),
    ...(now.addresses === before.addresses ? {} : { allowed_addresses: linesIn(now.addresses) }),
  }
}

function amountIn(text: string): string | null {
  return text.trim() === '' ? null : text.trim()
}

function linesIn(text: string): readonly string[] | null {
  const lines = text.split(/[\s,]+/).filter((line) => line !== '')
  return lines.length === 0 ? null : lines
}

export function LimitFields({ of: limits, set }: { of: TypedLimits; set: (limits: TypedLimits) => void }) {
  const [isOpen] = useState(
    Object.values(limits).some((limit) => limit === true || (limit !== false && limit.length > 0)),
  )
  return (
    <details open={isOpen}>
      <summary>Limits</summary>
      <div class="stack limits">
        <Field label="Requests per minute" hint="Within the limit of the workspace. Empty: only that limit applies.">
          <input
            name="requests_per_minute"
            type="number"
            min="1"
            max="100000000"
            value={limits.rate}
            onInput={(event) => set({ ...limits, rate: event.currentTarget.value })}
          />
        </Field>
        <Field
          label="Tokens per minute"
          hint="Input and output. Requests are refused once it is reached. Empty: only the limit of the workspace applies."
        >
          <input
            name="tokens_per_minute"
            type="number"
            min="1"
            max="100000000"
            value={limits.tokens}
            onInput={(event) => set({ ...limits, tokens: event.currentTarget.value })}
          />
        </Field>
        <Field label="Spend per day (AUD)" hint="Excluding GST, for each day in Sydney. Empty: no such limit.">
          <input
            name="spend_per_day"
            inputMode="decimal"
            value={limits.perDay}
            onInput={(event) => set({ ...limits, perDay: event.currentTarget.value })}
          />
        </Field>
        <Field label="Spend per month (AUD)" hint="Excluding GST, for each month in Sydney. Empty: no such limit.">
          <input
            name="spend_per_month"
            inputMode="decimal"
            value={limits.perMonth}
            onInput={(event) => set({ ...limits, perMonth: event.currentTarget.value })}
          />
        </Field>
        <Field label="Models" hint="Slugs or aliases, one on each line. Empty: all models of the workspace.">
          <textarea
            name="allowed_models"
            rows={3}
            spellcheck={false}
            value={limits.models}
            onInput={(event) => set({ ...limits, models: event.currentTarget.value })}
          />
        </Field>
        <label class="inline">
          <input
            name="manage_keys"
            type="checkbox"
            checked={limits.manages}
            onChange={({ currentTarget: { checked } }) => set({ ...limits, manages: checked })}
          />
          May manage keys through the API, which may do no more than this one
        </label>
        <fieldset class="choices">
          <legend>Endpoints</legend>
          {endpoints.map((path) => (
            <label key={path} class="inline">
              <input
                type="checkbox"
                checked={limits.endpoints.includes(path)}
                onChange={({ currentTarget: { checked } }) =>
                  set({
                    ...limits,
                    endpoints: endpoints.filter((it) => (it === path ? checked : limits.endpoints.includes(it))),
                  })
                }
              />
              <code class="small">{path}</code>
            </label>
          ))}
          <small>None selected: all endpoints.</small>
        </fieldset>
        <Field
          label="Addresses"
          hint="IP addresses and networks such as 203.0.113.0/24, one on each line. Empty: any address. Behind a proxy, the service sees the address of the proxy."
        >
          <textarea
            name="allowed_addresses"
            rows={2}
            spellcheck={false}
            value={limits.addresses}
            onInput={(event) => set({ ...limits, addresses: event.currentTarget.value })}
          />
        </Field>
      </div>
    </details>
  )
}
