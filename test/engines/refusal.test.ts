import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { cleanRefusal } from '../../src/engines/refusal-text.ts'
import { refusalFrom, type EngineRefusal } from '../../src/engines/refusal.ts'

const openAi = (message: string, more: object = {}): string => JSON.stringify({ error: { message, ...more } })
const codeOf = ({ error, isWorthAnother }: EngineRefusal): string =>
  `${error.code}${isWorthAnother ? ', try another' : ''}`

describe('a text that is too long', () => {
  const refusals: readonly (readonly [server: string, status: number, body: string])[] = [
    [
      'vLLM',
      400,
      openAi(
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 in the messages, 100 in the completion). Please reduce the length of the messages or completion.",
        { type: 'BadRequestError', code: 400 },
      ),
    ],
    [
      'vLLM, a prompt alone',
      400,
      openAi(
        'The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.',
      ),
    ],
    [
      'vLLM, a newer one',
      400,
      openAi(
        "You passed 8193 input tokens and requested 1 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 8191 tokens. Please reduce the length of the input prompt.",
      ),
    ],
    [
      'SGLang',
      400,
      openAi("The input (10000 tokens) is longer than the model's context length (8192 tokens).", {
        type: 'BadRequestError',
      }),
    ],
    [
      'SGLang, with its output',
      400,
      openAi(
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion.",
      ),
    ],
    [
      'SGLang, as a plain error',
      400,
      openAi('Input length (9000 tokens) exceeds the maximum allowed length (8186 tokens). Use a shorter input.'),
    ],
    [
      'TEI',
      413,
      JSON.stringify({
        error: 'Input validation error: `inputs` must have less than 512 tokens. Given: 600',
        error_type: 'Validation',
      }),
    ],
    [
      'llama.cpp',
      400,
      openAi('the request exceeds the available context size, try increasing it', {
        type: 'exceed_context_size_error',
        n_prompt_tokens: 600,
        n_ctx: 512,
      }),
    ],
    ['llama.cpp, by its name alone', 400, openAi('no', { type: 'exceed_context_size_error' })],
    [
      'llama.cpp, embeddings',
      500,
      openAi('input is too large to process. increase the physical batch size', { type: 'server_error', code: 500 }),
    ],
    [
      'llama.cpp, embeddings, a newer one',
      500,
      openAi('input (600 tokens) is too large to process. increase the physical batch size (current batch size: 512)', {
        type: 'server_error',
      }),
    ],
    ['llama.cpp, an older one', 500, openAi('input is larger than the max context size. skipping')],
    [
      'llama-cpp-python',
      400,
      openAi(
        "This model's maximum context length is 512 tokens, however you requested 600 tokens (584 in your prompt; 16 for the completion).",
        { type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' },
      ),
    ],
    [
      'llama-cpp-python, when it does not recognise it',
      500,
      openAi('Requested tokens (600) exceed context window of 512', { type: 'internal_server_error' }),
    ],
    ['Ollama', 400, openAi('the input length exceeds the context length', { type: 'invalid_request_error' })],
    ['Ollama, an older one', 500, openAi('input length exceeds maximum context length', { type: 'api_error' })],
    ['NIM', 400, openAi('Input length 600 exceeds maximum allowed token size 512')],
    [
      'LiteLLM',
      400,
      openAi(
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.\nmodel=llama. context_window_fallbacks=None. fallbacks=None.\n\nSet 'context_window_fallback' - https://docs.litellm.ai/docs/routing#fallbacks. Received Model Group=llama\nAvailable Model Group Fallbacks=None",
        { code: '400' },
      ),
    ],
    [
      'LiteLLM in front of llama.cpp',
      500,
      openAi(
        'litellm.InternalServerError: InternalServerError: OpenAIException - input is too large to process. increase the physical batch size. Received Model Group=embed\nAvailable Model Group Fallbacks=None',
        { code: '500' },
      ),
    ],
  ]
  for (const [server, status, body] of refusals) {
    it(`is context_length_exceeded, in the words of ${server}, and is sent nowhere else`, () => {
      const refusal = refusalFrom(status, body, 'input')
      assert.equal(codeOf(refusal), 'context_length_exceeded')
      assert.equal(refusal.error.param, 'input')
      assert.match(refusal.error.message, /^The request exceeds the model's maximum context length: \w/)
      assert.doesNotMatch(refusal.error.message, /litellm|fallback|[a-z]Error|Exception|https?:|Group/)
    })
  }
})

describe('a mistake of the caller that an engine answers with 500', () => {
  const messages = [
    '[json.exception.type_error.302] type must be string, but is number',
    'tools param requires --jinja flag',
    'Only one completion choice is allowed',
    'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
    'logprobs is not supported for models created with logits_all=False',
    'this model does not support embeddings',
    'Failed to parse grammar',
    'litellm.BadRequestError: OpenAIException - top_k: too many',
    '1 validation error for list[function-wrap[__log_extra_fields__()]]\n  Input should be a valid list [type=list_type]\n    For further information visit https://errors.pydantic.dev/2.11/v/list_type',
  ]
  for (const message of messages) {
    it(`is one, and is sent nowhere else: ${message.slice(0, 60)}`, () => {
      assert.equal(codeOf(refusalFrom(500, openAi(message))), 'invalid_value')
    })
  }

  it('is one by the type of the error', () => {
    assert.equal(codeOf(refusalFrom(500, openAi('bad', { type: 'invalid_request_error' }))), 'invalid_value')
  })
})

describe('a failure of the engine', () => {
  const failures: readonly (readonly [status: number, body: string])[] = [
    [500, ''],
    [500, openAi('')],
    [500, openAi('EngineCore encountered an issue. See stack trace (above) for the root cause.')],
    [500, openAi('CUDA error: an illegal memory access was encountered; input is too large to process')],
    [500, openAi('CUDA out of memory. Tried to allocate 2 GiB; this type is not supported')],
    [500, openAi('llama runner process no longer running: exit status 2')],
    [500, openAi('litellm.InternalServerError: OpenAIException - Connection error.. Received Model Group=x')],
    [502, openAi('input is too large to process')],
    [503, openAi('Loading model', { type: 'unavailable_error' })],
    [503, openAi("This model's maximum context length is 512 tokens")],
    [401, openAi('bad key')],
    [403, openAi('no')],
    [404, openAi('no model')],
    [400, openAi('/chat/completions: Invalid model name passed in model=weir-7. Call `/v1/models` to view models.')],
    [400, JSON.stringify({ detail: 'ModelNotDeployed: Invalid model: weir-7' })],
    [400, openAi('model "weir-7" not found, try pulling it first')],
  ]
  for (const [status, body] of failures) {
    it(`stays one, reveals nothing, and another engine may succeed: ${status} ${body.slice(0, 80)}`, () => {
      const refusal = refusalFrom(status, body)
      assert.equal(codeOf(refusal), 'upstream_error, try another')
      assert.equal(refusal.error.message, `The engine failed with status ${status}.`)
    })
  }

  it('is not tried elsewhere after a timeout or a redirect', () => {
    for (const status of [408, 504]) assert.equal(codeOf(refusalFrom(status, '')), 'upstream_timeout')
    assert.equal(codeOf(refusalFrom(302, '')), 'upstream_error')
    assert.equal(codeOf(refusalFrom(429, '')), 'model_overloaded, try another')
  })

  it('is worth a retry later, unless the engine refuses its key', () => {
    const worth = [400, 401, 403, 404, 429, 500, 503, 504].filter(
      (status) => refusalFrom(status, '').error.waitingHelps,
    )
    assert.deepEqual(worth, [404, 429, 500, 503, 504])
  })
})

describe('a status', () => {
  it('means the same in every server: which code, which status to try elsewhere', () => {
    const kinds = [
      300, 302, 400, 401, 402, 403, 404, 405, 408, 409, 413, 418, 422, 429, 499, 500, 501, 502, 503, 504, 529,
    ]
    assert.deepEqual(
      kinds.map((status) => `${status} ${codeOf(refusalFrom(status, '{}'))}`),
      [
        '300 upstream_error',
        '302 upstream_error',
        '400 invalid_value',
        '401 upstream_error, try another',
        '402 upstream_error',
        '403 upstream_error, try another',
        '404 upstream_error, try another',
        '405 upstream_error',
        '408 upstream_timeout',
        '409 upstream_error',
        '413 request_too_large',
        '418 upstream_error',
        '422 invalid_value',
        '429 model_overloaded, try another',
        '499 upstream_error',
        '500 upstream_error, try another',
        '501 upstream_error, try another',
        '502 upstream_error, try another',
        '503 upstream_error, try another',
        '504 upstream_timeout',
        '529 upstream_error, try another',
      ],
    )
  })

  it('of 413 keeps the engine’s message, and has a default otherwise', () => {
    assert.equal(refusalFrom(413, openAi('10 MB at most')).error.message, '10 MB at most')
    assert.equal(refusalFrom(413, '').error.message, 'The request is too large for the engine.')
    assert.equal(refusalFrom(400, '').error.message, 'The engine refused the request as invalid.')
    assert.equal(refusalFrom(429, '').error.param, 'model')
  })

  it('of 400 and 422 is about the length if the message hints at it', () => {
    for (const status of [400, 422]) {
      for (const hint of ['context window', 'Context size', 'maximum number of tokens', 'maximum length']) {
        assert.equal(codeOf(refusalFrom(status, openAi(`the ${hint} is 5`))), 'context_length_exceeded', hint)
      }
      assert.equal(
        codeOf(refusalFrom(status, openAi('maximum of very many different kinds of tokens'))),
        'invalid_value',
      )
    }
    // In the others, a hint is not enough.
    assert.equal(codeOf(refusalFrom(500, openAi('the context window is 5'))), 'upstream_error, try another')
    assert.equal(codeOf(refusalFrom(413, openAi('the context window is 5'))), 'request_too_large')
  })

  it('of 400, 413 and 500 is about the length if the error has its name', () => {
    const names = ['exceed_context_size_error', 'context_length_exceeded', 'ContextWindowExceededError']
    for (const status of [400, 413, 422, 500]) {
      for (const field of ['type', 'code', 'error_type']) {
        for (const name of names) {
          const refusal = refusalFrom(status, openAi('no', { [field]: name, other: 'x' }), 'prompt')
          assert.equal(codeOf(refusal), 'context_length_exceeded', `${status} ${field} ${name}`)
        }
        assert.notEqual(codeOf(refusalFrom(status, openAi('no', { [field]: '' }))), 'context_length_exceeded')
      }
    }
    const bare = refusalFrom(400, openAi('', { type: names[0] }))
    assert.equal(bare.error.message, "The request exceeds the model's maximum context length.")
    assert.equal(bare.error.param, null)
  })

  it('of 500 is a mistake of the caller if the error has the name of one', () => {
    for (const name of ['invalid_request_error', 'BadRequestError', 'ValidationError', 'Validation']) {
      for (const field of ['type', 'code', 'error_type']) {
        assert.equal(codeOf(refusalFrom(500, openAi('no', { [field]: name }))), 'invalid_value', name)
        const several = { type: 'x', code: 'y', error_type: 'z', [field]: name }
        assert.equal(codeOf(refusalFrom(500, openAi('no', several))), 'invalid_value', name)
      }
    }
    for (const name of ['', 'server_error', 7]) {
      assert.equal(codeOf(refusalFrom(500, openAi('no', { type: name }))), 'upstream_error, try another')
    }
    const noModel = openAi('the model x does not exist', { type: 'invalid_request_error' })
    assert.equal(codeOf(refusalFrom(500, noModel)), 'upstream_error, try another')
  })
})

describe('a model that an engine does not have', () => {
  it('is named at most 200 characters before "not found"', () => {
    const said = (between: number): string =>
      codeOf(refusalFrom(400, openAi(`model ${'x'.repeat(between - 2)} not found`)))
    assert.equal(said(195), 'upstream_error, try another')
    assert.equal(said(196), 'invalid_value')
    assert.equal(said(5), 'upstream_error, try another')
    assert.equal(codeOf(refusalFrom(400, openAi('file not found; the model is fine'))), 'invalid_value')
    // Any of several places may name it.
    const second = 'tool not found. The model m1 does not exist'
    assert.equal(codeOf(refusalFrom(400, openAi(second))), 'upstream_error, try another')
  })
})

describe('the message of a refusal', () => {
  it('is found wherever servers put it', () => {
    for (const [body, words] of [
      [{ error: { message: 'one' } }, 'one'],
      [{ error: 'two' }, 'two'],
      [{ message: 'three' }, 'three'],
      [{ detail: 'four' }, 'four'],
      [{ error: 'five', detail: 'six' }, 'five'],
      [{ message: 'seven', error: 'eight' }, 'seven'],
      [{ error: { message: 7 }, detail: 'nine' }, 'nine'],
      [{ detail: [{ loc: ['body', 'x'], msg: 'ten' }, { msg: 'eleven' }] }, 'ten'],
    ] as const) {
      assert.equal(refusalFrom(400, JSON.stringify(body)).error.message, words)
    }
    for (const body of [
      'null',
      '7',
      '"text"',
      '[]',
      '{"error":null}',
      '{"detail":[]}',
      '{"detail":[null]}',
      '{"detail":[{"msg":7}]}',
    ]) {
      assert.equal(refusalFrom(400, body).error.message, 'The engine refused the request as invalid.', body)
    }
  })

  it('names the field, if the server does', () => {
    const paramOf = (body: unknown): string | null => refusalFrom(400, JSON.stringify(body)).error.param
    assert.equal(paramOf({ error: { message: 'no', param: 'top_p' } }), 'top_p')
    assert.equal(paramOf({ message: 'no', param: 'top_p' }), 'top_p')
    assert.equal(paramOf({ error: { message: 'no', param: null } }), null)
    assert.equal(paramOf({ detail: [{ loc: ['body', 0, 'text', 'tools', 3, 'name'], msg: 'no' }] }), 'tools')
    assert.equal(paramOf({ detail: [{ loc: 'body', msg: 'no' }] }), null)
    assert.equal(paramOf({ detail: [{ msg: 'no' }] }), null)
    assert.equal(paramOf({ error: { message: "1 validation error: {'loc': ('body',)}" } }), null)
    assert.equal(paramOf({ error: { message: "{'loc': ('body', 'stop', 0)}" } }), 'stop')
    assert.equal(paramOf({ error: { message: "no 'place' given" } }), null)
  })

  it('is read up to 4,000 characters', () => {
    const long = 'maximum context length'
    for (const body of [
      (words: string) => words,
      (words: string) => openAi(words),
      (words: string) => JSON.stringify({ detail: [{ msg: words }] }),
    ]) {
      const at = (start: number): string => codeOf(refusalFrom(400, body(`${'x'.repeat(start - 1)} ${long}`)))
      assert.equal(at(4000 - long.length), 'context_length_exceeded')
      assert.equal(at(4000 - long.length + 1), 'invalid_value')
      assert.equal(codeOf(refusalFrom(400, body(long))), 'context_length_exceeded')
    }
  })

  it('is shown up to 500 characters', () => {
    assert.equal(cleanRefusal('x'.repeat(500)), 'x'.repeat(500))
    assert.equal(cleanRefusal('x'.repeat(501)), 'x'.repeat(500))
    assert.equal(cleanRefusal(`${' '.repeat(3990)}0123456789abc`), '0123456789')
  })

  it('is that of a nested message, if its object opens at most 200 characters before it', () => {
    const nested = (between: number): string => `refused {${' '.repeat(between)}"message": "inner"}`
    assert.equal(cleanRefusal(nested(199)), 'inner')
    assert.notEqual(cleanRefusal(nested(200)), 'inner')
    assert.equal(cleanRefusal('"message": "inner"'), '"message": "inner"')
    assert.equal(cleanRefusal(String.raw`{'msg': 'it\'s\nbad'}`.replaceAll('\\\\', '\\')), "it's bad")
  })

  it('ends where the server starts to describe itself', () => {
    for (const end of [
      'Traceback (most recent call last): x',
      'Stack trace: x',
      '\n  at x',
      '\n File "x',
      'Received Model Group = x',
      'Available Model Group Fallbacks=x',
      'No fallback model group found',
      'Error doing the fallback',
      'LiteLLM Retried: 2 times',
      'Deployment Info: x',
      'LiteLLM: model group x',
      'To drop them from the call',
      "Set 'context_window_fallback",
      'model=x fallbacks=y',
      'content_policy_fallbacks=y',
    ]) {
      assert.equal(cleanRefusal(`bad ${end}`), 'bad', end)
      assert.equal(cleanRefusal(`bad ${end}; Stack trace: x; Deployment Info: y`), 'bad', end)
    }
  })

  it('contains no link', () => {
    for (const lead of [
      'please see',
      'For more details',
      'for further information, please refer to',
      'visit:',
      'read',
      'more information at',
      '(see',
      ' –',
    ]) {
      assert.equal(cleanRefusal(`bad ${lead} https://a.example/x`), 'bad', lead)
    }
    assert.equal(cleanRefusal('bad see see see see see https://a.example/x'), 'bad')
    assert.equal(cleanRefusal('bad see see see see see see https://a.example/x'), 'bad see')
    assert.equal(cleanRefusal('one see https://a.example/x two at http://b.example. three'), 'one two three')
    assert.equal(cleanRefusal('oversee https://a.example/x'), 'oversee')
  })

  it('names the first field that FastAPI finds wrong', () => {
    const body = { detail: [{ loc: ['body', 'temperature'], msg: 'Input should be a valid number', input: 'x' }] }
    const { error } = refusalFrom(422, JSON.stringify(body))
    assert.deepEqual([error.message, error.param], ['Input should be a valid number', 'temperature'])
  })

  it('names the first field that llama-cpp-python and infinity find wrong', () => {
    const python = openAi(
      "1 validation error:\n  {'type': 'float_parsing', 'loc': ('body', 'temperature'), 'msg': 'Input should be a valid number', 'input': 'hot'}\n\n  File \"/opt/llama_cpp/server/app.py\", line 5",
      { type: 'internal_server_error', param: null },
    )
    const { error } = refusalFrom(500, python)
    assert.deepEqual(
      [error.code, error.message, error.param],
      ['invalid_value', 'Input should be a valid number', 'temperature'],
    )
    const infinity = { detail: [{ loc: ['body', 'text', 'input', 'list[constrained-str]', 0], msg: 'Bad string' }] }
    assert.equal(refusalFrom(422, JSON.stringify(infinity)).error.param, 'input')
  })

  it('is not shown if it is not JSON', () => {
    const { error } = refusalFrom(400, '<html>secret.internal</html>')
    assert.equal(error.message, 'The engine refused the request as invalid.')
    assert.equal(codeOf(refusalFrom(500, 'input is too large to process')), 'context_length_exceeded')
  })

  const cases: readonly (readonly [said: string, shown: string])[] = [
    ['bad grammar', 'bad grammar'],
    [
      'litellm.BadRequestError: OpenAIException - bad grammar. Received Model Group=x\nAvailable Model Group Fallbacks=None',
      'bad grammar.',
    ],
    [
      "litellm.BadRequestError: OpenAIException - bad grammar\n\nLiteLLM: model group 'smollm2' failed with the error above. No fallback was attempted.",
      'bad grammar',
    ],
    [
      'litellm.UnsupportedParamsError: Setting dimensions is not supported. To drop it from the call, set `litellm.drop_params = True`.',
      'Setting dimensions is not supported.',
    ],
    [
      "<class 'infinity_emb.primitives.MatryoshkaDimError'> -> dim=64 is not in a valid range",
      'dim=64 is not in a valid range',
    ],
    ["/chat/completions: Missing required parameter: 'messages'.", "Missing required parameter: 'messages'."],
    ['bad grammar\nmodel=llama. context_window_fallbacks=None. fallbacks=None.', 'bad grammar'],
    [
      "litellm.BadRequestError: OpenAIException - Error code: 400 - {'error': {'message': \"it's bad\", 'type': 'x'}}",
      "it's bad",
    ],
    ['Error code: 400 - {"error":{"message":"bad \\"grammar\\"","code":null}}', 'bad "grammar"'],
    ["ValueError('bad grammar')", 'bad grammar'],
    ['ValueError: bad grammar', 'bad grammar'],
    ['InternalServerError: torch.cuda.OutOfMemoryError: bad', 'bad'],
    [
      'bad: jinja2.exceptions.TemplateError: Conversation roles must alternate',
      'bad: Conversation roles must alternate',
    ],
    ['[json.exception.type_error.302] type must be string, but is number', 'type must be string, but is number'],
    ['bad grammar\nTraceback (most recent call last):\n  File "/opt/x.py", line 3\nValueError', 'bad grammar'],
    ['bad grammar\n    at parse (/srv/app/index.js:3:1)', 'bad grammar'],
    [
      'Input should be a valid list. For further information visit https://errors.pydantic.dev/2.11/v/list_type',
      'Input should be a valid list.',
    ],
    ['bad grammar (see https://docs.example.com/a#b)', 'bad grammar'],
    ['cannot read /models/llama/weights.bin: bad', 'cannot read …: bad'],
    ['cannot read C:\\models\\llama.bin', 'cannot read …'],
    ['failed in grammar.cpp:42', 'failed in …'],
    ['model Llama-8B.Q4.gguf is bad', 'model … is bad'],
    ['upstream 10.0.0.7:8000 said no to localhost:9000', 'upstream … said no to …'],
    ['key sk-abcdef123 is bad', 'key … is bad'],
    ['a/b and image/png and 3/4 stay, and so does /v1', 'a/b and image/png and 3/4 stay, and so does /v1'],
    ['the Error of my ways; an Exception proves it', 'the Error of my ways; an Exception proves it'],
    ['  ', ''],
    ['registry.ollama.ai/library/smollm2:latest does not support tools', 'smollm2:latest does not support tools'],
  ]
  for (const [said, shown] of cases) {
    it(`is about the request alone: ${JSON.stringify(said).slice(0, 70)}`, () =>
      assert.equal(cleanRefusal(said), shown))
  }

  it('is short, whatever an engine sends', () => {
    const parts = [
      'Error: ',
      'see ',
      'https://',
      '/a',
      "{'message': '",
      '\\',
      'ValueError(',
      "'",
      ' ',
      'x',
      'fallbacks=',
    ]
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 3000 }), (pieces) => {
        assert.ok(cleanRefusal(pieces.join('')).length <= 500)
      }),
      { numRuns: 200 },
    )
  })
})
