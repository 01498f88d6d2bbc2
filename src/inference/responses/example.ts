const model = 'huggingfacetb/smollm2-135m-instruct'
const item = { id: 'msg_01k3zq8v6t_0', type: 'message', role: 'assistant' }
const text = 'A weir is a low dam that controls the flow of a river.'

/** The fields of every response, whatever its request. */
const settings = {
  model,
  error: null,
  incomplete_details: null,
  background: false,
  instructions: null,
  max_output_tokens: 100,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: 'default',
  store: false,
  temperature: null,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: null,
  truncation: 'disabled',
}

const answer = {
  id: 'resp_01k3zq8v6t',
  object: 'response',
  created_at: 1795000000,
  status: 'completed',
  ...settings,
  output: [{ ...item, status: 'completed', content: [{ type: 'output_text', text, annotations: [], logprobs: [] }] }],
  usage: {
    input_tokens: 27,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 14,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 41,
  },
}

export const responsesExample = {
  request: { model, instructions: 'You answer in one sentence.', input: 'What is a weir?', max_output_tokens: 100 },
  answer,
  /** The first and the last events, and one from in between. */
  stream: [
    {
      type: 'response.created',
      sequence_number: 0,
      response: { ...answer, status: 'in_progress', output: [], usage: null },
    },
    {
      type: 'response.output_text.delta',
      sequence_number: 4,
      item_id: item.id,
      output_index: 0,
      content_index: 0,
      delta: 'A weir',
      logprobs: [],
    },
    { type: 'response.completed', sequence_number: 20, response: answer },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
}
