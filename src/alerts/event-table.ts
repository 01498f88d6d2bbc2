import { Type, type Static, type TProperties } from 'typebox'

/** What operators can be notified of. */

const text = Type.String()
const textOrNull = Type.Union([text, Type.Null()])

const workspace = { workspace: text }
const key = { ...workspace, key_id: text, key_name: textOrNull, key_ending: textOrNull }
/** `period`: the month in Sydney, such as 2026-11, or the day, such as 2026-11-18. Amounts are in AUD, excluding GST. */
const spend = { period: text, limit: text, spent: text }
const percent = Type.Integer()
/** `total`: in AUD, including GST. */
const invoice = {
  ...workspace,
  number: text,
  kind: Type.Enum(['tax_invoice', 'adjustment_note']),
  period: text,
  total: text,
  due: textOrNull,
}
const engine = { url: text, lanes: Type.Array(text) }
const lane = { lane: text, queue_depth: Type.Integer(), max_queue_depth: Type.Integer() }

const event = <Fields extends TProperties>(summary: string, fields: Fields) => ({ summary, data: Type.Object(fields) })

export const eventTable = {
  'spend.threshold_reached': event('A workspace has spent this share of its limit. Once for each share and month.', {
    ...workspace,
    ...spend,
    percent,
  }),
  'spend.limit_reached': event('A workspace has spent its limit. Once for each limit and month.', {
    ...workspace,
    ...spend,
    /** Requests are not refused. */
    is_soft: Type.Boolean(),
  }),
  'key.spend_threshold_reached': event(
    'A key has spent this share of its limit for a day or a month. Once for each share and period.',
    { ...key, ...spend, percent },
  ),
  'key.spend_limit_reached': event('A key has spent its limit for a day or a month. Once for each limit and period.', {
    ...key,
    ...spend,
  }),
  'engine.down': event('An address of an engine has not answered for a minute.', engine),
  'engine.up': event('An address of an engine that was down has answered for a minute.', engine),
  'lane.saturated': event('The queue of a lane was more than 80 % full for two minutes.', lane),
  'lane.recovered': event('The queue of a saturated lane was below that for two minutes.', lane),
  'invoice.issued': event('A tax invoice or an adjustment note was issued.', invoice),
  'invoice.paid': event('A payment was recorded after which nothing is owed on an invoice.', {
    ...workspace,
    number: text,
    paid_on: text,
  }),
  'invoice.overdue': event('The due day of an invoice has passed, and an amount is still owed.', {
    ...workspace,
    number: text,
    due: text,
  }),
  'key.created': event('A key was created.', {
    ...key,
    expires_at: textOrNull,
  }),
  'key.revoked': event('A key was revoked.', key),
  'key.expiring': event('A key expires in less than seven days.', {
    ...key,
    expires_at: text,
  }),
  'download.finished': event('A model was downloaded to this machine.', { model: text }),
  'webhook.test': event('An operator has asked for a test. Every endpoint receives it, whatever it subscribes to.', {
    endpoint: text,
  }),
}

export type EventType = keyof typeof eventTable
export const eventTypes = Object.keys(eventTable) as readonly EventType[]

/** The fields that are added when an event is dispatched. */
type Looked = 'workspace' | 'key_id' | 'key_name' | 'key_ending'
export type EventData<Type extends EventType> = Omit<Static<(typeof eventTable)[Type]['data']>, Looked>
