import type { RequestFacts } from '../../src/inference/request/prepared-request.ts'
import { dataUrl, jpeg, png } from './image-samples.ts'

/** Requests of every endpoint that differ in what is made of them. */

/** The models of the test, by what is special about them. */
export type ModelName = 'openai' | 'vllm' | 'llamacpp' | 'python' | 'tei' | 'nim' | 'plain' | 'small' | 'none'

export interface RequestCase {
  readonly path: string
  readonly model: ModelName
  readonly what: string
  readonly body: object
  readonly facts: Partial<RequestFacts>
}

type Listed = readonly [what: string, body: object, model?: ModelName, facts?: Partial<RequestFacts>]

export function requestCases(): readonly RequestCase[] {
  return Object.entries({
    '/chat/completions': chats(),
    '/completions': completions(),
    '/embeddings': embeddings(),
    '/rerank': reranks(),
    '/reranking': rerankings(),
    '/images/generations': images(),
    '/messages': messages(),
    '/responses': responses(),
  }).flatMap(([path, all]) =>
    all.map(([what, body, model = 'openai', facts = {}]) => ({ path, model, what, body, facts })),
  )
}

const pngUrl = dataUrl('png', png())
const jpegUrl = dataUrl('jpeg', jpeg())
const words = (count: number): string => 'word '.repeat(count)
const user = (content: unknown): object => ({ role: 'user', content })
const image = (url: unknown, more: object = {}): object => ({ type: 'image_url', image_url: url, ...more })
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
const tool = { type: 'function', function: { name: 'f', description: 'F', parameters: { type: 'object' } } }
const schema = { type: 'object', properties: { a: { type: 'string' } } }
const webUrl = 'https://images.example/cat.png'

/** Values that change nothing, and beside each one that does. */
const noOps: Readonly<Record<string, readonly [nothing: unknown, something: unknown]>> = {
  n: [1, 2],
  top_p: [1, 0.5],
  frequency_penalty: [0, 1],
  presence_penalty: [0, 1],
  repetition_penalty: [1, 1.1],
  top_k: [-1, 5],
  min_p: [0, 0.1],
  logprobs: [false, true],
  top_logprobs: [0, undefined],
  stop: [[], ['x']],
  tools: [[], [tool]],
  tool_choice: ['none', undefined],
  parallel_tool_calls: [true, false],
  logit_bias: [{}, { '5': 1 }],
  response_format: [{ type: 'text' }, { type: 'json_object' }],
}

function chats(): readonly Listed[] {
  const say = (messages: readonly object[], more: object = {}): object => ({ messages, ...more })
  const hello = [user('Hello')]
  return [
    ['a message', say(hello)],
    ['a message, with the name that the engine knows', say(hello), 'plain'],
    ['a limit of the output', say(hello, { max_tokens: 7 })],
    ['the newer limit of the output, which wins', say(hello, { max_tokens: 7, max_completion_tokens: 9 })],
    ['limits that are null', say(hello, { max_tokens: null, max_completion_tokens: null })],
    ['a limit beyond that of the model', say(hello, { max_tokens: 1001 })],
    ['a newer limit beyond that of the model', say(hello, { max_completion_tokens: 1001 })],
    ['the largest limit of the model', say(hello, { max_tokens: 1000 })],
    ['a stream', say(hello, { stream: true })],
    ['a stream with usage', say(hello, { stream: true, stream_options: { include_usage: true } }), 'vllm'],
    ['a stream of a server that hides refusals', say(hello, { stream: true }), 'python'],
    ['several choices', say(hello, { n: 3, seed: 5 })],
    ['several choices, one call each', say(hello, { n: 3, seed: 5, temperature: 0.5 }), 'llamacpp'],
    ['several choices without a seed, one call each', say(hello, { n: 2, stream: true }), 'llamacpp'],
    ['one choice of a server with one for each call', say(hello, { n: 1, seed: 5 }), 'llamacpp'],
    ['a developer', say([{ role: 'developer', content: 'Be brief.' }, ...hello])],
    ['a field that is not known', say([{ ...hello[0], cache_control: { type: 'x' } }], { strange: 1 })],
    ['a part with a field that is not known', say([user([{ type: 'text', text: 'a', cache_control: 1 }])])],
    ['parts', say([user([{ type: 'text', text: 'a' }, image({ url: pngUrl, detail: 'low' })])])],
    ['an image that is a bare text', say([user([image(pngUrl)])])],
    ['an image with a field that is not known', say([user([image({ url: pngUrl, format: 'png' })])])],
    ['an image part with a field that is not known', say([user([image({ url: pngUrl }, { more: 1 })])])],
    ['an image and a detail of null', say([user([image({ url: jpegUrl, detail: null })])])],
    ['an image of another type than it says', say([user([image({ url: dataUrl('jpeg', png()) })])])],
    ['an image that is none', say([user([image({ url: dataUrl('png', Buffer.from('none')) })])])],
    ['an image in half of its base64', say([user([image({ url: pngUrl.slice(0, -1) })])])],
    ['an image with a wrong letter', say([user([image({ url: `${pngUrl.slice(0, -8)}!${pngUrl.slice(-7)}` })])])],
    ['an image that is too wide', say([user([image({ url: dataUrl('png', png({ width: 10_001 })) })])])],
    ['an image by another scheme', say([user([image({ url: 'ftp://x/cat.png' })])])],
    ['an image of the system', say([{ role: 'system', content: [image({ url: pngUrl })] }, ...hello])],
    ['an image for a model without eyes', say([user([image({ url: pngUrl })])]), 'plain'],
    ['an image from elsewhere', say([user([{ type: 'text', text: 'a' }, image({ url: webUrl, detail: 'high' })])])],
    [
      'an image from elsewhere that was fetched',
      say([user([{ type: 'text', text: 'a' }, image({ url: webUrl, detail: 'high' })])]),
      'openai',
      { images: new Map([[webUrl, pngUrl]]) },
    ],
    ['16 images from elsewhere', say([user(Array.from({ length: 16 }, (_, at) => image(`${webUrl}?${at}`)))])],
    ['17 images from elsewhere', say([user(Array.from({ length: 17 }, (_, at) => image(`${webUrl}?${at}`)))])],
    ['no content', say([...hello, { role: 'user' }])],
    ['a content of null', say([...hello, { role: 'assistant', content: null }])],
    ['a call of a tool without content', say([...hello, { role: 'assistant', tool_calls: [call] }])],
    ['an empty list of calls without content', say([...hello, { role: 'assistant', tool_calls: [] }])],
    ['calls of a user', say([{ role: 'user', tool_calls: [call] }])],
    [
      'a result of a tool',
      say([
        ...hello,
        { role: 'assistant', content: '', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'r' },
      ]),
    ],
    ['a result without its call', say([...hello, { role: 'tool', content: 'r' }])],
    [
      'a call with a field that is not known',
      say([...hello, { role: 'assistant', content: null, name: 'n', tool_calls: [{ ...call, index: 0 }] }]),
    ],
    [
      'a function with a field that is not known',
      say([
        ...hello,
        { role: 'assistant', tool_calls: [{ ...call, function: { ...call.function, parsed: null } }], refusal: 'no' },
      ]),
    ],
    ['usage without a stream', say(hello, { stream_options: { include_usage: true } })],
    ['the best tokens without their probabilities', say(hello, { top_logprobs: 2 })],
    ['the best tokens', say(hello, { top_logprobs: 2, logprobs: true })],
    ['a tool that is required, and none', say(hello, { tool_choice: 'required' })],
    ['a tool that is required, and an empty list', say(hello, { tool_choice: 'required', tools: [] })],
    ['a tool that is required', say(hello, { tool_choice: 'required', tools: [tool] })],
    ['a chosen tool', say(hello, { tool_choice: { type: 'function', function: { name: 'f' } }, tools: [tool] })],
    ['a chosen tool that is not there', say(hello, { tool_choice: { type: 'function', function: { name: 'g' } } })],
    ['a text that is too long', say([user(words(300))]), 'small'],
    ['a text that leaves too little room', say([user(words(140))], { max_tokens: 100 }), 'small'],
    ['a text that leaves a little room', say([user(words(120))]), 'small'],
    ['parameters as vLLM calls them', say(hello, { ...some, reasoning_effort: 'low' }), 'vllm'],
    ['parameters as llama.cpp calls them', say(hello, some), 'llamacpp'],
    ['parameters that change nothing to any engine', say(hello, settingsOf(0))],
    [
      'lines that change',
      say([{ role: 'system', content: 'Be brief.\nDate: 17 Nov\nBe kind.' }, ...hello]),
      'openai',
      { changingLines: ['Date:'] },
    ],
    [
      'lines that change in parts, before a list',
      say([
        { role: 'developer', content: [{ type: 'text', text: 'Date: 17 Nov' }] },
        user([{ type: 'text', text: 'a' }]),
      ]),
      'openai',
      { changingLines: ['Date:', 'Time:'] },
    ],
    ['an engine that has no chats', say(hello), 'none'],
    ...Object.entries(noOps).flatMap(([name, [nothing, something]]): Listed[] => [
      [`${name} that changes nothing, of a model without parameters`, say(hello, { [name]: nothing }), 'plain'],
      ...(something === undefined
        ? []
        : ([[`${name} that a model does not support`, say(hello, { [name]: something }), 'plain']] as const)),
    ]),
    ['no tool to choose, and a tool', say(hello, { tool_choice: 'none', tools: [] }), 'plain'],
    ['parameters of null', say(hello, { temperature: null, stop: null, tools: null }), 'plain'],
    ['what never matters', say(hello, { user: 'u', metadata: { a: 'b' }, store: true, service_tier: 'auto' }), 'plain'],
  ]
}

const some = { temperature: 0.5, top_p: 0.9, top_k: 4, min_p: 0.1, repetition_penalty: 1.1, seed: 3, stop: ['a', 'b'] }

function settingsOf(which: 0 | 1): object {
  return Object.fromEntries(Object.entries(noOps).map(([name, values]) => [name, values[which]]))
}

function completions(): readonly Listed[] {
  return [
    ['a prompt', { prompt: 'Once' }],
    ['a prompt, with the name that the engine knows', { prompt: 'Once' }, 'plain'],
    ['several prompts', { prompt: ['Once', 'Twice'], n: 2, max_tokens: 5 }],
    ['several prompts, one call each', { prompt: ['Once', 'Twice'], n: 2, seed: 5, suffix: 'end' }, 'llamacpp'],
    ['a list of one prompt, one call each', { prompt: ['Once'] }, 'llamacpp'],
    ['one prompt of a server with one for each call', { prompt: 'Once', seed: 5 }, 'llamacpp'],
    ['several choices, one call each', { prompt: 'Once', n: 2, seed: 5 }, 'llamacpp'],
    ['the prompt again', { prompt: ['Once', 'Twice!'], echo: true }, 'vllm'],
    ['a suffix', { prompt: 'Once', suffix: 'upon' }],
    ['several prompts with a suffix', { prompt: ['Once', 'Twice'], suffix: 'upon' }],
    ['the best of three', { prompt: 'Once', best_of: 3, n: 2 }, 'vllm'],
    ['the best of fewer', { prompt: 'Once', best_of: 2, n: 3 }],
    ['the best of one', { prompt: 'Once', best_of: 1, stream: true }],
    ['the best of two in a stream', { prompt: 'Once', best_of: 2, stream: true }],
    ['the best of all of a model without parameters', { prompt: 'Once', best_of: 1 }, 'plain'],
    ['a stream with usage', { prompt: 'Once', stream: true, stream_options: { include_usage: true } }, 'vllm'],
    ['a stream of a server that hides refusals', { prompt: 'Once', stream: true }, 'python'],
    ['usage without a stream', { prompt: 'Once', stream_options: {} }],
    ['a limit beyond that of the model', { prompt: 'Once', max_tokens: 1001 }],
    ['prompts of which one is too long', { prompt: ['Once', words(300)] }, 'small'],
    ['probabilities', { prompt: 'Once', logprobs: 2 }],
    ['a parameter that a model does not support', { prompt: 'Once', temperature: 0.5 }, 'plain'],
  ]
}

function embeddings(): readonly Listed[] {
  const many = Array.from({ length: 70 }, (_, at) => `text ${at}`)
  return [
    ['a text', { input: 'Hello' }],
    ['a text, with the name that the engine knows', { input: 'Hello' }, 'vllm'],
    ['several texts', { input: ['a', 'b c'], encoding_format: 'base64' }],
    ['dimensions', { input: 'Hello', dimensions: 8, encoding_format: 'float' }],
    ['more texts than the engine takes at a time', { input: many }, 'tei'],
    ['token ids', { input: [9906, 1917] }],
    ['token ids in the thread', { input: [9906, 1917] }, 'openai', { isInThread: true }],
    ['lists of token ids in the thread', { input: [[9906], [1917]] }, 'openai', { isInThread: true }],
    ['a number that is no token id', { input: [100_300] }, 'openai', { isInThread: true }],
    ['lists with a number that is no token id', { input: [[1], [100_300]] }, 'openai', { isInThread: true }],
    ['a text that is too long', { input: ['a', words(300)] }, 'small'],
    ['more than the whole budget', { input: Array.from({ length: 200 }, () => words(9000)) }],
  ]
}

function reranks(): readonly Listed[] {
  const documents = ['one two', { text: 'three' }, 'four']
  return [
    ['documents', { query: 'q', documents }],
    ['the best, with their texts', { query: 'q', documents, top_n: 2, return_documents: true }],
    ['documents that the engine shortens', { query: 'q', documents: [words(50)], max_tokens_per_doc: 10 }],
    ['documents that are shortened here', { query: 'q', documents: [words(50)], max_tokens_per_doc: 10 }, 'tei'],
    [
      'more documents than the engine takes',
      { query: 'qü', documents: Array.from({ length: 70 }, (_, at) => `d${at}`) },
      'tei',
    ],
    ['a query that is too long', { query: words(300), documents }, 'small'],
    ['a document that is too long', { query: 'q', documents: [words(300)] }, 'small'],
    ['more than the whole budget', { query: words(9000), documents: Array.from({ length: 200 }, (_, at) => `d${at}`) }],
  ]
}

function rerankings(): readonly Listed[] {
  const passages = [{ text: 'one' }, { text: 'two three' }]
  return [
    ['passages', { query: { text: 'q' }, passages }, 'nim'],
    ['the best of them', { query: { text: 'q' }, passages, top_n: 1, truncate: 'END' }, 'nim'],
    ['passages for another server', { query: { text: 'q' }, passages, truncate: 'NONE' }],
    ['a passage that is too long', { query: { text: 'q' }, passages: [...passages, { text: words(300) }] }, 'small'],
    [
      'a passage that may be shortened',
      { query: { text: 'q' }, passages: [{ text: words(300) }], truncate: 'END' },
      'small',
    ],
    ['a query that is too long', { query: { text: words(300) }, passages, truncate: 'END' }, 'small'],
  ]
}

function images(): readonly Listed[] {
  const prompt = 'A cat'
  return [
    ['an image', { prompt }],
    ['an image of a size', { prompt, size: '512x512', quality: 'high', seed: 3, n: 2 }],
    ['an image of any size', { prompt, size: 'auto', quality: 'auto' }],
    ['no size and no quality', { prompt, size: null, quality: null, n: null }],
    ['what should not be on it', { prompt, negative_prompt: 'dogs', steps: 5 }],
    ['links, where there are none', { prompt, response_format: 'url' }],
    ['links', { prompt, response_format: 'url' }, 'openai', { offersLinks: true }],
    ['base64', { prompt, response_format: 'b64_json' }, 'openai', { offersLinks: true }],
    ['a stream', { prompt, stream: true }],
    ['no stream', { prompt, stream: false }],
    ['a prompt that is too long', { prompt: words(300) }, 'small'],
    ['a negative prompt that is too long', { prompt, negative_prompt: words(300) }, 'small'],
    ['an engine that makes none', { prompt }, 'tei'],
  ]
}

function messages(): readonly Listed[] {
  const ask = (list: readonly object[], more: object = {}): object => ({ messages: list, max_tokens: 20, ...more })
  const hello = [user('Hello')]
  const block = (content: readonly object[]): object => ask([user(content)])
  const own = { name: 'f', description: 'F', input_schema: { type: 'object' }, strict: true }
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pngUrl.split(',')[1] } }
  return [
    ['a message', ask(hello)],
    [
      'everything that may be set',
      ask(hello, { temperature: 0.5, top_p: 0.9, top_k: 3, stop_sequences: ['x'] }),
      'vllm',
    ],
    ['a system text', ask(hello, { system: 'Be brief.' })],
    [
      'system blocks',
      ask(hello, {
        system: [
          { type: 'text', text: 'Be brief.' },
          { type: 'text', text: 'Be kind.' },
        ],
      }),
    ],
    ['an empty system text', ask(hello, { system: '' })],
    ['an image of the system', ask(hello, { system: [{ type: 'text', text: 'a' }, picture] })],
    ['a message of the system', ask([...hello, { role: 'system', content: 'Be brief.' }])],
    ['blocks', block([{ type: 'text', text: 'Look.' }, picture, { type: 'text' }])],
    ['an image by address', block([{ type: 'image', source: { type: 'url', url: webUrl } }])],
    ['an image without its address', block([{ type: 'image', source: { type: 'url' } }])],
    ['an image without its type', block([{ type: 'image', source: { type: 'base64', data: 'AAAA' } }])],
    ['an image without its data', block([{ type: 'image', source: { type: 'base64', media_type: 'image/png' } }])],
    ['an image in a file', block([{ type: 'image', source: { type: 'file', url: webUrl } }])],
    ['a document', block([{ type: 'document', source: { type: 'text', data: 'The text.' } }])],
    ['a document of a text', block([{ type: 'document', source: { type: 'content', content: 'The text.' } }])],
    [
      'a document of blocks',
      block([
        {
          type: 'document',
          source: {
            type: 'content',
            content: [
              { type: 'text', text: 'a' },
              { type: 'text', text: 'b' },
            ],
          },
        },
      ]),
    ],
    ['a document in another form', block([{ type: 'document', source: { type: 'base64', data: 'AAAA' } }])],
    ['a document without a source', block([{ type: 'document' }])],
    ['a block that is not known', block([{ type: 'text', text: 'a' }, { type: 'x'.repeat(100) }])],
    [
      'what an assistant said',
      ask([
        ...hello,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 'unsealed' },
            { type: 'thinking', thinking: '', signature: Buffer.from('Sealed.').toString('base64') },
            { type: 'thinking', thinking: '', signature: 'unsealed' },
            { type: 'text', text: 'Looking.' },
            { type: 'tool_use', id: 'call_1', name: 'f', input: { a: 1 } },
            { type: 'tool_use', id: 'call_2', name: 'g' },
            { type: 'strange' },
          ],
        },
        user([
          { type: 'text', text: 'Here.' },
          { type: 'tool_result', tool_use_id: 'call_1', content: 'r1' },
          { type: 'tool_result', tool_use_id: 'call_2', content: [{ type: 'text', text: 'r2' }, picture] },
          { type: 'tool_result', tool_use_id: 'call_3' },
        ]),
        { role: 'assistant', content: 'Done.' },
        user('Thanks.'),
      ]),
    ],
    [
      'a result after a text',
      ask([...hello, user([{ type: 'tool_result', tool_use_id: 'c', content: 'r' }]), user('And?')]),
    ],
    ['a call without its id', ask([...hello, { role: 'assistant', content: [{ type: 'tool_use', name: 'f' }] }])],
    ['a call without its name', ask([...hello, { role: 'assistant', content: [{ type: 'tool_use', id: 'c' }] }])],
    ['a result without its call', block([{ type: 'tool_result', content: 'r' }])],
    [
      'a result with a block that is not known',
      block([{ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'x' }] }]),
    ],
    ['tools', ask(hello, { tools: [own, { ...own, name: 'g', type: 'custom', strict: null }] })],
    ['a tool of another kind', ask(hello, { tools: [{ type: 'web_search_20250305', name: 'web_search' }] })],
    ['a tool with a name that a chat does not take', ask(hello, { tools: [{ name: `mcp__${'é'.repeat(70)}` }] })],
    ...['auto', 'any', 'none', 'tool'].map((type): Listed => [
      `the choice of a tool: ${type}`,
      ask(hello, { tools: [own], tool_choice: { type, name: 'f' } }),
    ]),
    ['the choice of a tool, without any', ask(hello, { tool_choice: { type: 'any' } })],
    [
      'one tool at a time',
      ask(hello, { tools: [own], tool_choice: { type: 'auto', disable_parallel_tool_use: true } }),
    ],
    [
      'several tools at a time',
      ask(hello, { tools: [own], tool_choice: { type: 'auto', disable_parallel_tool_use: false } }),
    ],
    ['one tool at a time, without any', ask(hello, { tool_choice: { type: 'auto', disable_parallel_tool_use: true } })],
    ['what a model does not support', ask(hello, { output_config: { effort: 'low' } }), 'plain'],
    ['an effort', ask(hello, { output_config: { effort: 'high' } })],
    ['a schema', ask(hello, { output_config: { format: { type: 'json_schema', schema } } })],
    ['a schema in the older field', ask(hello, { output_format: { type: 'json_schema', schema } })],
    ...['enabled', 'adaptive', 'disabled'].map((type): Listed => [
      `thinking ${type}`,
      ask(hello, { thinking: { type } }),
    ]),
    ['thinking that is not shown', ask(hello, { thinking: { type: 'enabled', display: 'omitted' } })],
    ['a stream', ask(hello, { stream: true })],
    ['no limit', { messages: hello }],
    ['a limit beyond that of the model', ask(hello, { max_tokens: 1001 })],
    ['a text that is too long', ask([user(words(300))]), 'small'],
  ]
}

function responses(): readonly Listed[] {
  const ask = (input: unknown, more: object = {}): object => ({ input, ...more })
  const items = (...list: readonly object[]): object => ask([{ role: 'user', content: 'Hello' }, ...list])
  const own = { type: 'function', name: 'f', description: 'F', parameters: { type: 'object' }, strict: true }
  const custom = { type: 'custom', name: 'patch', description: 'P' }
  const inSpace = {
    type: 'namespace',
    name: 'files__',
    tools: [
      { ...own, name: 'read' },
      { ...custom, name: 'write' },
    ],
  }
  return [
    ['a text', ask('Hello')],
    ['instructions', ask('Hello', { instructions: 'Be brief.' })],
    [
      'everything that may be set',
      ask('Hello', { temperature: 0.5, top_p: 0.9, max_output_tokens: 9, metadata: { a: 'b' } }),
    ],
    [
      'items of every kind',
      items(
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be kind.' }] },
        {
          type: 'reasoning',
          content: [
            { type: 'reasoning_text', text: 'Hm.' },
            { type: 'reasoning_text', text: ' Yes.' },
          ],
        },
        { type: 'reasoning', encrypted_content: Buffer.from('Sealed.').toString('base64') },
        { type: 'reasoning' },
        {
          role: 'assistant',
          content: [{ type: 'output_text', text: 'One.' }, { type: 'refusal', refusal: 'No.' }, { type: 'refusal' }],
        },
        { role: 'assistant', content: 'Two.' },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
        { type: 'function_call', call_id: 'c2', name: 'read', namespace: 'files_' },
        { type: 'custom_tool_call', call_id: 'c3', name: 'patch', input: 'text "quoted"' },
        { type: 'custom_tool_call', call_id: 'c4', name: 'patch' },
        { type: 'function_call_output', call_id: 'c1', output: 'r1' },
        {
          type: 'custom_tool_call_output',
          call_id: 'c3',
          output: [
            { type: 'input_text', text: 'r3' },
            { type: 'input_image', image_url: pngUrl },
          ],
        },
        { type: 'function_call_output', call_id: 'c4' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'input_image', image_url: pngUrl, detail: 'low' },
            { type: 'input_image', image_url: pngUrl, detail: 'auto' },
          ],
        },
        { type: 'web_search_call' },
      ),
    ],
    [
      'a text after calls of the same turn',
      items({ type: 'function_call', call_id: 'c', name: 'f' }, { role: 'assistant', content: 'And.' }),
    ],
    ['a reference', items({ type: 'item_reference', call_id: 'x' })],
    ['a call without its id', items({ type: 'function_call', name: 'f' })],
    ['a call without its name', items({ type: 'custom_tool_call', call_id: 'c' })],
    ['a result without its call', items({ type: 'function_call_output', output: 'r' })],
    ['a part that is not known', ask([{ role: 'user', content: [{ type: 'input_file' }] }])],
    [
      'an image without its address',
      ask([{ role: 'user', content: [{ type: 'input_text', text: 'a' }, { type: 'input_image' }] }]),
    ],
    ['an image of the system', ask([{ role: 'system', content: [{ type: 'input_image', image_url: pngUrl }] }])],
    [
      'tools',
      ask('Hello', {
        tools: [own, { ...custom, format: { type: 'grammar', syntax: 'lark', definition: 'start: x' } }, inSpace],
      }),
    ],
    ['a custom tool with any text', ask('Hello', { tools: [{ ...custom, format: { type: 'text' } }] })],
    [
      'tools that are left out',
      ask('Hello', { tools: [{ type: 'web_search' }, { type: 'function' }, own, { ...own, description: 'again' }] }),
    ],
    [
      'a tool that is not strict',
      ask('Hello', { tools: [{ ...own, strict: false, description: null, parameters: null }] }),
    ],
    ...['auto', 'none', 'required'].map((choice): Listed => [
      `the choice of a tool: ${choice}`,
      ask('Hello', { tools: [own], tool_choice: choice }),
    ]),
    ['the choice of a tool, without any', ask('Hello', { tool_choice: 'required' })],
    ['a chosen tool', ask('Hello', { tools: [own, custom], tool_choice: { type: 'function', name: 'f' } })],
    [
      'a chosen tool of a namespace',
      ask('Hello', { tools: [own, inSpace], tool_choice: { type: 'function', name: 'read', namespace: 'files' } }),
    ],
    ['a chosen tool that is not there', ask('Hello', { tools: [own], tool_choice: { type: 'function', name: 'g' } })],
    ['a chosen kind of tool', ask('Hello', { tools: [own], tool_choice: { type: 'web_search' } })],
    [
      'tools that are allowed',
      ask('Hello', {
        tools: [own, custom],
        tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ name: 'patch' }] },
      }),
    ],
    [
      'tools that are allowed, and not required',
      ask('Hello', {
        tools: [own, custom],
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ name: 'f' }] },
      }),
    ],
    ['no tool that is allowed', ask('Hello', { tools: [own], tool_choice: { type: 'allowed_tools' } })],
    ['one tool at a time', ask('Hello', { tools: [own], parallel_tool_calls: false })],
    ['one tool at a time, without any', ask('Hello', { parallel_tool_calls: false })],
    ['a text as its format', ask('Hello', { text: { format: { type: 'text' }, verbosity: 'medium' } })],
    ['JSON', ask('Hello', { text: { format: { type: 'json_object' }, verbosity: 'low' } })],
    [
      'a schema',
      ask('Hello', { text: { format: { type: 'json_schema', name: 'n', description: 'D', schema, strict: true } } }),
    ],
    ['a schema without more', ask('Hello', { text: { format: { type: 'json_schema', name: 'n', schema } } })],
    [
      'reasoning',
      ask('Hello', { reasoning: { effort: 'low', summary: 'auto' }, include: ['reasoning.encrypted_content'] }),
    ],
    [
      'what a model does not support',
      ask('Hello', { reasoning: { effort: 'low' }, truncation: 'auto', parallel_tool_calls: true }),
      'plain',
    ],
    [
      'more than the header lists',
      ask('Hello', { tools: Array.from({ length: 10 }, (_, at) => ({ type: `kind${at}`, name: `t${at}` })) }),
    ],
    ['a response before', ask('Hello', { previous_response_id: 'resp_1' })],
    ['a conversation', ask('Hello', { conversation: 'conv_1' })],
    ['a prompt', ask('Hello', { prompt: { id: 'p' } })],
    ['the background', ask('Hello', { background: true })],
    ['not the background', ask('Hello', { background: false, previous_response_id: null })],
    ['a stream', ask('Hello', { stream: true })],
    ['a limit beyond that of the model', ask('Hello', { max_output_tokens: 1001 })],
    ['a text that is too long', ask(words(300)), 'small'],
  ]
}

/** What engines answer, and in which form the caller gets it. */
export interface AnswerCase {
  readonly path: string
  readonly model: ModelName
  readonly what: string
  readonly body: object
  /** One for each call: JSON, or the text of a stream. */
  readonly answers: readonly (object | string)[]
}

type ListedAnswer = readonly [
  what: string,
  body: object,
  answer: object | string | readonly object[],
  model?: ModelName,
]

export function answerCases(): readonly AnswerCase[] {
  return Object.entries({
    '/chat/completions': chatAnswers({ messages: [user('Hello')] }),
    '/messages': [
      ...chatAnswers({ messages: [user('Hello')], max_tokens: 20, thinking: { type: 'enabled' } }, 'vllm'),
      ...chatAnswers({ messages: [user('Hello')], max_tokens: 20 }, 'openai', 'hidden, '),
    ],
    '/responses': [
      ...chatAnswers({ input: 'Hello', tools: [{ type: 'custom', name: 'patch' }], temperature: 0.5, top_p: 0.5 }),
      ...chatAnswers({ input: 'Hello', include: ['reasoning.encrypted_content'] }, 'vllm', 'sealed, '),
    ],
    '/completions': completionAnswers(),
    '/embeddings': embeddingAnswers(),
    '/rerank': rankAnswers({ query: 'q', documents: ['a', 'b', 'c'] }),
    '/reranking': rankAnswers({ query: { text: 'q' }, passages: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] }),
    '/images/generations': imageAnswers(),
  }).flatMap(([path, all]) =>
    all.map(([what, body, answer, model = 'openai']) => ({
      path,
      model,
      what,
      body,
      answers: Array.isArray(answer) ? (answer as readonly object[]) : [answer],
    })),
  )
}

const usage = { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 3 } }
const detailed = { ...usage, completion_tokens_details: { reasoning_tokens: 2 } }

function chatAnswers(body: object, model: ModelName = 'openai', prefix = ''): readonly ListedAnswer[] {
  const ended = (
    message: object,
    reason: string | null = 'stop',
    more: object = {},
    count: object = usage,
  ): object => ({
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: reason, ...more }],
    usage: count,
  })
  const patch = { id: 'c2', function: { name: 'patch', arguments: '{"input":"a\\nb"}' } }
  const whole: readonly (readonly [string, object])[] = [
    ['a text', ended({ content: 'Hi' })],
    ['reasoning and a text', ended({ content: 'Hi', reasoning_content: 'Hm.' }, 'stop', {}, detailed)],
    ['reasoning by its other name', ended({ content: 'Hi', reasoning: 'Hm.' })],
    ['a refusal', ended({ content: null, refusal: 'No.' }, 'content_filter')],
    ['calls', ended({ content: null, tool_calls: [call, patch] }, 'tool_calls')],
    ['calls of an engine that says stop', ended({ content: 'See.', tool_calls: [call] }, 'stop')],
    [
      'a call that was cut',
      ended({ tool_calls: [{ ...call, function: { name: 'f', arguments: '{"a":' } }] }, 'length'),
    ],
    ['a call with no object', ended({ tool_calls: [{ ...call, function: { name: 'f', arguments: '[1]' } }] })],
    ['a call without arguments', ended({ tool_calls: [{ id: 'c', function: { name: 'f', arguments: ' ' } }] })],
    ['a stop sequence of vLLM', ended({ content: 'Hi' }, 'stop', { stop_reason: 'END' })],
    ['a stop sequence of SGLang', ended({ content: 'Hi' }, 'stop', { matched_stop: 'END' })],
    ['a stop token', ended({ content: 'Hi' }, 'stop', { matched_stop: 128_009 })],
    ['no output', ended({ content: '' })],
    ['an end for its length', ended({ content: 'Hi' }, 'length')],
    ['an end that is not known', ended({ content: 'Hi' }, 'other')],
    ['an end by another name', ended({ content: 'Hi' }, 'eos')],
    ['a choice that was broken off', ended({ content: 'Hi' }, 'abort')],
    ['a choice that has not ended', ended({ content: 'Hi' }, null)],
    ['no choices', { choices: [], usage }],
    [
      'too many choices',
      { choices: [0, 1].map((index) => ({ index, message: { content: `t${index}` }, finish_reason: 'stop' })), usage },
    ],
    ['no usage', ended({ content: 'Hi' }, 'stop', {}, {})],
    [
      'probabilities',
      ended({ content: 'Hi' }, 'stop', {
        logprobs: { content: [{ token: 'Hi', logprob: -0.5, bytes: [72, 105], top_logprobs: [] }] },
      }),
    ],
    [
      'probabilities of a text',
      ended({ content: 'Hi' }, 'stop', {
        logprobs: { tokens: ['Hi', 5], token_logprobs: [-0.5, null], top_logprobs: [{ Hi: -0.5, Ho: 'x' }] },
      }),
    ],
    ['no answer', []],
  ]
  const delta = (given: object, reason: string | null = null, more: object = {}): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: given, finish_reason: reason, ...more }] })}\n\n`
  const count = `data: ${JSON.stringify({ choices: [], usage: detailed })}\n\ndata: [DONE]\n\n`
  const piece = (index: number, text: string, head: object = {}): object => ({
    tool_calls: [{ index, ...head, function: { arguments: text } }],
  })
  const opens = (index: number, name: string): string =>
    delta({ tool_calls: [{ index, id: `c${index}`, type: 'function', function: { name, arguments: '' } }] })
  const streams: readonly (readonly [string, string])[] = [
    [
      'a text',
      delta({ role: 'assistant', content: '' }) +
        delta({ content: 'Hi' }) +
        delta({ content: ' there' }) +
        delta({}, 'stop') +
        count,
    ],
    [
      'reasoning and a text',
      delta({ reasoning: 'Hm' }) + delta({ reasoning_content: '.' }) + delta({ content: 'Hi' }, 'stop') + count,
    ],
    [
      'calls',
      opens(0, 'f') +
        delta(piece(0, '{"a":')) +
        delta(piece(0, '1}')) +
        opens(1, 'patch') +
        delta(piece(1, '{"input":"x"}')) +
        delta({}, 'tool_calls') +
        count,
    ],
    ['a refusal', delta({ refusal: 'No.' }) + delta({}, 'content_filter') + count],
    [
      'a call that was cut',
      delta({ content: 'See.' }) + opens(0, 'f') + delta(piece(0, '{"a":')) + delta({}, 'length') + count,
    ],
    ['a stop sequence', delta({ content: 'Hi' }) + delta({}, 'stop', { stop_reason: 'END' }) + count],
    ['no end', delta({ content: 'Hi' }) + 'data: [DONE]\n\n'],
    ['no count', delta({ content: 'Hi' }, 'stop') + 'data: [DONE]\n\n'],
    ['an error', delta({ content: 'Hi' }) + 'data: {"error":{"message":"gone"}}\n\n'],
    ['more than was allowed', delta({ content: 'word '.repeat(600) }) + delta({ content: 'more' }) + count],
  ]
  return [
    ...whole.map(([what, answer]): ListedAnswer => [`${prefix}${what}`, body, answer, model]),
    ...streams.flatMap(([what, text]): ListedAnswer[] => [
      [`${prefix}a stream with ${what}`, { ...body, stream: true }, text, model],
    ]),
  ]
}

function completionAnswers(): readonly ListedAnswer[] {
  const body = { prompt: 'Once' }
  const choice = (index: number, text: unknown, reason: string | null = 'stop', more: object = {}): object => ({
    index,
    text,
    finish_reason: reason,
    ...more,
  })
  const chatLike = {
    logprobs: {
      content: [
        { token: 'é', logprob: -0.5, top_logprobs: [{ token: 'é', logprob: -0.5 }, { token: 'e' }] },
        { token: '👩', logprob: -1 },
      ],
    },
  }
  const event = (it: object, more: object = {}): string => `data: ${JSON.stringify({ choices: [it], ...more })}\n\n`
  return [
    ['a text', body, { choices: [choice(0, ' upon')], usage }],
    ['a text that is none', body, { choices: [choice(0, 5)], usage }],
    ['several choices', { ...body, n: 2 }, { choices: [choice(0, 'a'), choice(1, 'b')], usage }],
    ['one choice too few', { ...body, n: 2 }, { choices: [choice(0, 'a')], usage }],
    [
      'a text with its prompt',
      { ...body, echo: true, max_tokens: 2 },
      { choices: [choice(0, 'Once upon a time there was')], usage },
    ],
    [
      'more than was allowed',
      { ...body, max_tokens: 2 },
      { choices: [choice(0, 'upon a time there was')], usage: { ...usage, completion_tokens: 5 } },
    ],
    ['probabilities of a chat', { ...body, logprobs: 2 }, { choices: [choice(0, 'é👩', 'stop', chatLike)], usage }],
    [
      'one answer for each choice',
      { ...body, n: 2 },
      [
        { choices: [choice(0, 'a')], usage },
        { choices: [choice(0, 'b')], usage },
      ],
      'llamacpp',
    ],
    [
      'a stream',
      { ...body, stream: true },
      event(choice(0, ' up', null)) +
        event(choice(0, 'on', 'stop')) +
        event(choice(0, '', 'stop')) +
        'data: [DONE]\n\n',
    ],
    [
      'a stream with usage',
      { ...body, stream: true, stream_options: { include_usage: true } },
      event(choice(0, 'a', 'length'), { usage }) + 'data: [DONE]\n\n',
    ],
    [
      'a stream with probabilities',
      { ...body, stream: true, logprobs: 1 },
      event(choice(0, 'é', null, chatLike)) + event(choice(0, 'x', 'stop', chatLike)),
    ],
  ]
}

function embeddingAnswers(): readonly ListedAnswer[] {
  const body = { input: ['a', 'b'] }
  const data = (...vectors: readonly unknown[]): object[] =>
    vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  const base64 = Buffer.from(Float32Array.from([0.5, -1]).buffer).toString('base64')
  const counted = { prompt_tokens: 2, total_tokens: 2 }
  return [
    ['numbers', body, { data: data([0.5, -1], [1, 2]), usage: counted }],
    [
      'numbers in other fields',
      body,
      { data: data([0.5, -1], [1, 2]).map((it) => ({ ...it, more: 1 })), usage: counted },
    ],
    ['base64 for numbers', body, { data: data(base64, base64), usage: counted }],
    [
      'numbers for base64',
      { ...body, encoding_format: 'base64' },
      { data: data([0.5, -1], [0.5, -1]), usage: counted },
    ],
    ['base64', { ...body, encoding_format: 'base64' }, { data: data(base64, base64), usage: counted }],
    ['base64 of half a number', { ...body, encoding_format: 'base64' }, { data: data(base64, 'AAAA'), usage: counted }],
    [
      'what is no base64',
      { ...body, encoding_format: 'base64' },
      { data: data(base64, '!!!!!!!!!!!='), usage: counted },
    ],
    ['another order', body, { data: data([0.5], [1]).toReversed(), usage: counted }],
    ['no usage', body, { data: data([0.5], [1]) }],
    ['too few', body, { data: data([0.5]), usage: counted }],
    ['an empty vector', body, { data: data([0.5], []), usage: counted }],
    ['a vector with a text', body, { data: data([0.5], ['x']), usage: counted }],
    [
      'several calls',
      { input: Array.from({ length: 33 }, (_, at) => `t${at}`) },
      [Array.from({ length: 32 }, (_, at) => [at]), [[32]]],
      'tei',
    ],
  ]
}

function rankAnswers(body: object): readonly ListedAnswer[] {
  const results = (...scores: readonly number[]): object => ({
    results: scores.map((relevance_score, index) => ({ index, relevance_score })),
    usage: { total_tokens: 6 },
  })
  const rankings = {
    rankings: [
      { index: 1, logit: 2 },
      { index: 0, logit: -1 },
      { index: 2, logit: 0 },
    ],
    usage: { prompt_tokens: 6, total_tokens: 6 },
  }
  return [
    ['scores', body, results(0.1, 0.9, 0.5)],
    ['equal scores', body, results(0.5, 0.5, 0.5)],
    ['scores of 0 and 1', body, results(1, 0, -0.5)],
    ['scores beyond 1, which are logits', body, results(-2, 3, 0)],
    ['the best two', { ...body, top_n: 2 }, results(0.1, 0.9, 0.5)],
    ['one score too few', body, results(0.1, 0.9)],
    ['one score too many', body, results(0.1, 0.9, 0.3, 0.4)],
    [
      'a score twice',
      body,
      {
        results: [
          { index: 0, relevance_score: 1 },
          { index: 0, relevance_score: 1 },
          { index: 1, relevance_score: 1 },
        ],
      },
    ],
    ['rankings of NIM', body, rankings, 'nim'],
    [
      'scores of TEI',
      body,
      [
        [
          { index: 2, score: 1 },
          { index: 0, score: -1 },
          { index: 1, score: 0.5 },
        ],
      ],
      'tei',
    ],
    ['texts', { ...body, return_documents: true }, results(0.1, 0.9, 0.5)],
    ['no answer', body, {}],
  ]
}

function imageAnswers(): readonly ListedAnswer[] {
  const body = { prompt: 'A cat', n: 2 }
  const b64 = png().toString('base64')
  return [
    ['images', body, { created: 5, data: [{ b64_json: b64 }, { b64_json: b64, revised_prompt: 'A "cat"' }] }],
    ['one image too few', body, { data: [{ b64_json: b64 }] }],
    ['one image too many', body, { data: [{ b64_json: b64 }, { b64_json: b64 }, { b64_json: b64 }] }],
    ['an image that is no base64', body, { data: [{ b64_json: b64 }, { b64_json: 'no!' }] }],
    ['no image', body, { data: [] }],
    ['a link', body, { data: [{ url: 'http://x' }] }],
    ['an image that is large', body, { data: [{ b64_json: png({ more: 6000 }).toString('base64') }] }],
  ]
}
