import { Type, type Static, type TObject, type TProperties } from 'typebox'

/** What operators can be notified of. */

const time = (description: string) => Type.String({ format: 'date-time', maxLength: 30, description })
const amount = (description: string) => Type.String({ maxLength: 40, description: `${description}, in AUD` })
const name = (description: string) => Type.String({ maxLength: 2048, description })

const workspace = { workspace: name('The name of the workspace') }
const key = {
  ...workspace,
  key_id: name('The id of the key'),
  key_name: Type.Union([name('What the key is for'), Type.Null()]),
  key_ending: Type.Union([name('The last four characters of the key'), Type.Null()]),
}
const spend = {
  period: name('The month in Sydney, such as 2026-11, or the day, such as 2026-11-18'),
  limit: amount('The spend limit of the period, excluding GST'),
  spent: amount('What was spent in the period when it was noticed, excluding GST'),
}
const percent = Type.Integer({ description: 'The share of the limit that was reached' })
const invoice = {
  ...workspace,
  number: name('The number of the document'),
  kind: Type.Enum(['tax_invoice', 'adjustment_note']),
  period: name('The month that it is for'),
  total: amount('The total, including GST'),
  due: Type.Union([name('The day on which it is due'), Type.Null()]),
}
const engine = { url: name('The address of the engine'), lanes: Type.Array(name('A lane that it serves')) }
const lane = {
  lane: name('The lane, which is one deployment of a model'),
  queue_depth: Type.Integer({ description: 'How many requests wait' }),
  max_queue_depth: Type.Integer({ description: 'How many may wait' }),
}

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
    is_soft: Type.Boolean({ description: 'Requests are not refused' }),
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
    number: invoice.number,
    paid_on: name('The day of the payment'),
  }),
  'invoice.overdue': event('The due day of an invoice has passed, and an amount is still owed.', {
    ...workspace,
    number: invoice.number,
    due: name('The day on which it was due'),
  }),
  'key.created': event('A key was created.', {
    ...key,
    expires_at: Type.Union([time('From then on it is refused'), Type.Null()]),
  }),
  'key.revoked': event('A key was revoked.', key),
  'key.expiring': event('A key expires in less than seven days.', {
    ...key,
    expires_at: time('From then on it is refused'),
  }),
  'download.finished': event('A model was downloaded to this machine.', { model: name('The slug of the model') }),
  'webhook.test': event('An operator has asked for a test. Every endpoint receives it, whatever it subscribes to.', {
    endpoint: name('The endpoint that is tested'),
  }),
}

export type EventType = keyof typeof eventTable
export const eventTypes = Object.keys(eventTable) as readonly EventType[]

/** The fields that are added when an event is dispatched. */
type Looked = 'workspace' | 'key_id' | 'key_name' | 'key_ending'
export type EventData<Type extends EventType> = Omit<Static<(typeof eventTable)[Type]['data']>, Looked>

/** The schema of what is sent. */
export function bodySchema(type: EventType): TObject {
  return Type.Object({ type: Type.Literal(type), timestamp: time('When it happened'), data: eventTable[type].data })
}
