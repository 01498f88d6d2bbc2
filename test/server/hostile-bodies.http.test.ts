import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import { fill, hostileStage, ROOM, type HostileStage } from '../support/hostile-stage.ts'
import { png } from '../support/image-samples.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { someOf } from '../support/long-run.ts'

/**
 * Bodies made to keep the event loop busy, on every endpoint that takes JSON. Every way that was found to take longer than
 * allowed has its place in this list; hostile-fields.test.ts makes bodies from the schemas.
 */

/** The JSON of so many values. */
function list(count: number, make: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => make(index)).join(',')
}

/** Any JSON value that is hard on a scanner, a parser or a walk over the result. */
const values: Readonly<Record<string, () => string>> = {
  'a plain string': () => `"${fill('plain ')}"`,
  'a Cyrillic string': () => `"${fill('ж')}"`,
  'a string of emoji with some ASCII': () => `"${fill('aaaaaaaaaaaa😀')}"`,
  'a string of escaped quotes': () => `"${fill('\\"')}"`,
  'a string of backslashes': () => `"${fill('\\\\')}"`,
  'a string of \\u escapes': () => `"${fill('\\u0436')}"`,
  'white space': () => `${fill(' ')}0`,
  'one long number': () => fill('1'),
  'long numbers': () => `[${fill('1'.repeat(20_000), ROOM, ',')}]`,
  'as many short strings as are allowed': () => `[${list(240_000, () => `"${'x'.repeat(80)}"`)}]`,
  'as many numbers as are allowed': () => `[${list(240_000, (index) => String(index))}]`,
  'more values than are allowed': () => `[${fill('0', ROOM, ',')}]`,
  'as many different names as are allowed': () =>
    `[${list(24, (object) => `{${list(9_900, (index) => `"name ${object} ${index}":0`)}}`)}]`,
  'one object with very many names': () => `{${list(240_000, (index) => `"name ${index}":${index}`)}}`,
  'very many small objects': () => `[${list(80_000, (index) => `{"a":"xxxxxxxxxx","b":${index}}`)}]`,
  'nested arrays': () => `[${list(2500, () => '['.repeat(95) + ']'.repeat(95))}]`,
  'deeper arrays than are allowed': () => '['.repeat(ROOM / 2) + ']'.repeat(ROOM / 2),
  'arrays that are never closed': () => '['.repeat(ROOM),
  'a string that is never closed': () => `"${fill('x')}`,
  'an enormous name': () => `{"${fill('x')}":0}`,
  'a long text after which the JSON is broken': () => `["${fill('x', ROOM - 10)}" 0]`,
}

/** Those that an endpoint may take for a text or a list, so that it goes on to count and to rewrite them. */
const accepted = [
  'a plain string',
  'a string of emoji with some ASCII',
  'a string of escaped quotes',
  'as many short strings as are allowed',
  'as many numbers as are allowed',
  'very many small objects',
]

/** The smallest valid request of each endpoint, and the field that the hostile value takes the place of. */
const endpoints: Readonly<Record<string, { readonly body: object; readonly field: string }>> = {
  '/chat/completions': { body: { model: 'big/chat', messages: [{ role: 'user', content: 'Hi' }] }, field: 'messages' },
  '/completions': { body: { model: 'big/chat', prompt: 'Hi' }, field: 'prompt' },
  '/embeddings': { body: { model: 'big/embedder', input: 'Hi' }, field: 'input' },
  '/rerank': { body: { model: 'big/reranker', query: 'q', documents: ['a'] }, field: 'query' },
  '/reranking': { body: { model: 'big/ranker', query: { text: 'q' }, passages: [{ text: 'a' }] }, field: 'passages' },
  '/images/generations': { body: { model: 'big/painter', prompt: 'A weir' }, field: 'prompt' },
}

/** Requests that only one endpoint understands, and the status of their answers. */
const special: readonly (readonly [name: string, path: string, status: number, body: () => string])[] = [
  ...(['big', 'small'] as const).flatMap((size) => {
    const status = size === 'big' ? 200 : 400
    const chat = (messages: string, rest = ''): string => `{"model":"${size}/chat","messages":[${messages}]${rest}}`
    const ranking = (query: string, documents: string, rest = ''): string =>
      `{"model":"${size}/reranker","query":"${query}","documents":[${documents}]${rest}}`
    const passages = (query: string, texts: string, rest = ''): string =>
      `{"model":"${size}/ranker","query":{"text":"${query}"},"passages":[${texts}]${rest}}`
    return [
      [
        `a long message to a ${size} model`,
        '/chat/completions',
        status,
        () => chat(`{"role":"user","content":"${fill('plain ')}"}`),
      ],
      [
        `a long message that has to be rewritten, to a ${size} model`,
        '/chat/completions',
        status,
        () => chat(`{"role":"developer","content":"${fill('plain ')}"}`),
      ],
      [
        `as many messages as are allowed, to a ${size} model`,
        '/chat/completions',
        status,
        () => chat(list(10_000, () => `{"role":"user","content":"${'word '.repeat(400)}"}`)),
      ],
      [
        `many messages that have to be rewritten, to a ${size} model`,
        '/chat/completions',
        status,
        () => chat(list(10_000, () => `{"role":"developer","content":"${'word '.repeat(400)}","x":1}`)),
      ],
      [
        `a long text to complete by a ${size} model`,
        '/completions',
        status,
        () => `{"model":"${size}/chat","prompt":"${fill('plain ')}"}`,
      ],
      [
        `many texts to complete by a ${size} model`,
        '/completions',
        status,
        () => `{"model":"${size}/chat","prompt":[${list(128, () => `"${fill('plain ', 160_000)}"`)}]}`,
      ],
      [
        `many texts to embed by a ${size} model`,
        '/embeddings',
        status,
        () => `{"model":"${size}/embedder","input":[${list(2048, () => `"${fill('plain ', 10_000)}"`)}]}`,
      ],
      [
        `one long text to embed by a ${size} model`,
        '/embeddings',
        status,
        () => `{"model":"${size}/embedder","input":"${fill('plain ')}"}`,
      ],
      [
        `many documents to rerank by a ${size} model`,
        '/rerank',
        status,
        () =>
          ranking(
            'q',
            list(1000, () => `"${fill('plain ', 20_000)}"`),
            ',"return_documents":true,"top_n":1',
          ),
      ],
      [
        `documents to shorten for a ${size} model`,
        '/rerank',
        status,
        () =>
          ranking(
            'q',
            list(1000, () => `"${fill('plain ', 20_000)}"`),
            ',"max_tokens_per_doc":4000',
          ),
      ],
      [
        `passages to rerank by a ${size} model`,
        '/reranking',
        status,
        () =>
          passages(
            'q',
            list(512, () => `{"text":"${fill('plain ', 40_000)}"}`),
          ),
      ],
    ] as const
  }),
  [
    'a query of 19 MB for a thousand documents',
    '/rerank',
    400,
    () => `{"model":"small/reranker","query":"${fill('plain ', 19e6)}","documents":[${list(1000, () => '"a"')}]}`,
  ],
  [
    'the same query on an engine that takes few documents at a time',
    '/rerank',
    400,
    () => `{"model":"small/batches","query":"${fill('plain ', 19e6)}","documents":[${list(1000, () => '"a"')}]}`,
  ],
  [
    'a query of 19 MB for 512 passages',
    '/reranking',
    400,
    () =>
      `{"model":"small/ranker","truncate":"END","query":{"text":"${fill('plain ', 19e6)}"},"passages":[${list(512, () => '{"text":"a"}')}]}`,
  ],
  [
    'as many parts as are allowed',
    '/chat/completions',
    200,
    () =>
      `{"model":"big/chat","messages":[${list(250, () => `{"role":"user","content":[${list(150, () => '{"type":"text","text":"x"}')}]}`)}]}`,
  ],
  [
    'as many tool calls as are allowed',
    '/chat/completions',
    200,
    () =>
      `{"model":"big/chat","messages":[${list(240, () => `{"role":"assistant","tool_calls":[${list(100, () => '{"id":"","type":"function","function":{"name":"","arguments":""}}')}]}`)}]}`,
  ],
  [
    'more parts than are allowed',
    '/chat/completions',
    400,
    () =>
      `{"model":"big/chat","messages":[${list(10_000, () => `{"role":"user","content":[${list(8, () => '{"type":"text","text":"x"}')}]}`)}]}`,
  ],
  [
    'a large image',
    '/chat/completions',
    200,
    () =>
      `{"model":"big/chat","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"${image()}"}}]}]}`,
  ],
  [
    'a large image whose part has to be rewritten',
    '/chat/completions',
    200,
    () => `{"model":"big/chat","messages":[{"role":"user","content":[{"type":"image_url","image_url":"${image()}"}]}]}`,
  ],
  [
    'a tool with an enormous schema',
    '/chat/completions',
    400,
    () =>
      `{"model":"big/chat","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"description":"${fill('plain ')}"}}}]}`,
  ],
  [
    'an answer with an enormous schema',
    '/chat/completions',
    400,
    () =>
      `{"model":"big/chat","messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"f","schema":{"description":"${fill('plain ')}"}}}}`,
  ],
  [
    'very many biases',
    '/chat/completions',
    200,
    () =>
      `{"model":"big/chat","messages":[{"role":"user","content":"Hi"}],"logit_bias":{${list(9_900, (index) => `"${index}":1`)}}}`,
  ],
  [
    'as many token ids as are allowed',
    '/embeddings',
    200,
    () => `{"model":"big/embedder","input":[${list(1900, () => `[${list(128, (index) => String(index * 100))}]`)}]}`,
  ],
]

/** A picture followed by nothing, in base64: as long as a body may be. */
function image(): string {
  return `data:image/png;base64,${Buffer.concat([png(), Buffer.alloc(((ROOM - 1000) / 4) * 3)])
    .toString('base64')
    .slice(0, -4)}AAAA`
}

let stage: HostileStage

before(async () => {
  stage = await hostileStage()
  // The first requests of a process compile its code and load its tables, once.
  for (const [path, { body }] of Object.entries(endpoints)) await stage.post(path, JSON.stringify(body))
  await stage.post('/embeddings', '{"model":"big/embedder","input":[1,2,3]}')
  await stage.calibrate()
})
after(() => stage.stop())

describe('a hostile body does not delay other callers', () => {
  for (const [name, value] of someOf(Object.entries(values), 3)) {
    it(`${name}, in a field that is ignored`, () =>
      stage.harmless('/completions', `{"model":"big/chat","prompt":"Hi","strange":${value()}}`, 200, 400))
  }
  for (const name of someOf(accepted, 1)) {
    it(`${name}, in the field that each endpoint is about`, async () => {
      const value = values[name]?.() ?? ''
      for (const [path, { body, field }] of Object.entries(endpoints)) {
        const { [field]: _, ...rest } = body as Record<string, unknown>
        await stage.harmless(path, `${JSON.stringify(rest).slice(0, -1)},"${field}":${value}}`, 200, 400)
      }
    })
  }
})

it('the address of an image does not delay other callers, even if it is of the largest size', () => {
  const part = `{"type":"image_url","image_url":{"url":"http://${fill('@')}a"}}`
  return stage.harmless(
    '/chat/completions',
    `{"model":"big/chat","messages":[{"role":"user","content":[${part}]}]}`,
    400,
  )
})

/** Just small enough to be read in the main thread, so they take all of the time that a body may take there. */
const HERE = 524_288 - 1000

describe('a body of the largest size that is read at once does not delay other callers', () => {
  const inChat = (content: string): string =>
    `{"model":"big/chat","max_tokens":5,"messages":[{"role":"user","content":"a"},${content}]}`
  const ignored = (value: string): string => `{"model":"big/chat","prompt":"Hi","strange":${value}}`
  const bodies: readonly (readonly [name: string, path: string, body: () => string])[] = [
    ...['plain ', 'ж', 'aaaaaaaaaaaa😀', '\\"', '\\\\', '\\ud83d', ' \\n'].flatMap((piece) => {
      const text = fill(piece, HERE - 300)
      return [
        [`a message of ${piece}`, '/chat/completions', () => inChat(`{"role":"developer","content":"${text}"}`)],
        [
          `the input of a tool of ${piece}`,
          '/messages',
          () =>
            inChat(
              `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":"${text}"}}]},{"role":"user","content":"a"}`,
            ),
        ],
      ] as const
    }),
    [
      'objects that all have other names',
      '/completions',
      () => ignored(`[${list(22_000, (index) => `{"a${index}":0,"b${index}":1}`)}]`),
    ],
    [
      'objects with as many names as are allowed',
      '/completions',
      () => ignored(`[${list(3, (object) => `{${list(9900, (index) => `"${object}n${index}":0`)}}`)}]`),
    ],
    ['as many values as are allowed', '/completions', () => ignored(`[${list(249_000, () => '1')}]`)],
    [
      'parts',
      '/chat/completions',
      () => inChat(`{"role":"user","content":[${list(18_000, () => '{"type":"text","text":"x"}')}]}`),
    ],
    [
      'messages that have to be rewritten',
      '/chat/completions',
      () => inChat(list(9990, () => '{"role":"developer","content":"x","x":1}')),
    ],
    [
      'token ids',
      '/embeddings',
      () => `{"model":"big/embedder","input":[${list(1000, () => `[${list(128, (index) => String(index * 7))}]`)}]}`,
    ],
  ]
  for (const [name, path, body] of someOf(bodies, 8)) {
    it(`${name} (${path})`, async () => {
      const text = body()
      assert.ok(Buffer.byteLength(text) <= HERE + 1000, `${Buffer.byteLength(text)} bytes`)
      await stage.harmless(path, text, 200, 400)
    })
  }
})

describe('a large request does not delay other callers', () => {
  for (const [name, path, status, body] of someOf(special, 5)) {
    it(`${name} (${path}: ${status})`, () => stage.harmless(path, body(), status))
  }
})

describe('a long list of usage does not delay other callers', () => {
  const ROWS = 10_500
  const get = async (query: string): Promise<string> => {
    const response = await fetch(`${stage.weir.base}/usage?${query}`, {
      headers: { authorization: `Bearer ${stage.weir.key}` },
    })
    assert.equal(response.status, 200)
    return response.text()
  }

  before(async () => {
    const store = await openStore({ dataDir: stage.weir.dataDir, exclusive: false })
    const workspaces = await store.workspaces()
    const rows = Array.from({ length: ROWS }, (_, index) =>
      sampleRow(`row-${String(index).padStart(6, '0')}`, {
        workspaceId: workspaces[0]?.id ?? '',
        keyId: `key_${index}`,
        settledAt: 1_000_000 + Math.floor(index / 7),
      }),
    )
    await store.addRows(rows)
    await store.close()
  })

  for (const [query, entries] of [
    ['limit=10000', /"request_id"/g],
    ['limit=10000&group_by=key', /"key"/g],
    ['format=csv', /^row-/gm],
    ['format=jsonl', /"row-/g],
  ] as const) {
    it(query, async () => {
      let text = ''
      await stage.requireShortTurns(async () => {
        text = await get(query)
      })
      const found = text.match(entries)?.length ?? 0
      assert.ok(found >= 10_000, `${found} entries`)
    })
  }

  it('has every row once, in order, whatever the size of the pages', async () => {
    for (const limit of [10_000, 4999, 500, 501]) {
      const seen: string[] = []
      for (let next: string | null = ''; next !== null;) {
        const page = JSON.parse(await get(`limit=${limit}&model=meta/x${next && `&after=${next}`}`)) as {
          data: { request_id: string }[]
          has_more: boolean
          next: string | null
        }
        assert.ok(page.data.length === limit || !page.has_more)
        seen.push(...page.data.map((row) => row.request_id))
        ;({ next } = page)
      }
      assert.deepEqual(
        seen,
        Array.from({ length: ROWS }, (_, index) => `row-${String(index).padStart(6, '0')}`),
      )
    }
  })
})
