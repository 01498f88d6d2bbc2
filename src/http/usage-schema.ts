import Type from 'typebox'

/** The wire shapes of usage: documented from here. */

const count = (description?: string): Type.TInteger => Type.Integer(description === undefined ? {} : { description })
const text = (description?: string): Type.TString => Type.String(description === undefined ? {} : { description })
const textOrNull = () => Type.Union([Type.String(), Type.Null()])

const quantities = {
  input_tokens: count(),
  cached_input_tokens: count('Part of the input tokens, never beside them.'),
  output_tokens: count(),
  images: count(),
  audio_ms: count('Milliseconds of audio.'),
  amount_pico_aud: text('Exact: 10⁻¹² AUD, excluding GST.'),
}

export const usageRowSchema = Type.Object({
  request_id: text('The X-Request-Id of the response.'),
  model: text(),
  lane: text(),
  endpoint: text(),
  key_id: text(),
  max_tokens: count(),
  ...quantities,
  estimated: Type.Boolean({ description: 'The engine reported no usage; the figures are an estimate.' }),
  outcome: text(),
  price_version: count(),
  queue_wait_ms: count(),
  first_token_ms: Type.Union([Type.Integer(), Type.Null()]),
  duration_ms: count(),
  started: text(),
  settled: text('The time it is billed at.'),
  capacity_ms: Type.Optional(count('Of reserved capacity: how long it was reserved.')),
  corrects: Type.Optional(text('Of a correction: the row it takes back.')),
  reason: Type.Optional(text()),
  credit_note: Type.Optional(textOrNull()),
})

const sums = {
  requests: count(),
  estimated_requests: count('Those whose figures are an estimate.'),
  capacity_ms: count(),
  amount: text('AUD, exact, excluding GST.'),
}

const group = {
  model: Type.Optional(text('With group_by=model.')),
  key: Type.Optional(text('With group_by=key: the id of a key.')),
  day: Type.Optional(text('With group_by=day: a date in Sydney.')),
}

export const usageListSchema = Type.Object({
  object: Type.Literal('list'),
  group_by: Type.Optional(Type.String()),
  data: Type.Array(
    Type.Object({ ...Type.Partial(Type.Object({ ...usageRowSchema.properties, ...sums })).properties, ...group }),
    { description: 'Rows, oldest first; with group_by, sums.' },
  ),
  total: Type.Optional(Type.Object({ ...quantities, ...sums }, { description: 'With group_by: of the whole period.' })),
  has_more: Type.Boolean(),
  next: Type.Union([Type.String({ description: "Give it as 'after' for the next page." }), Type.Null()]),
})
