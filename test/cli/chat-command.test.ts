import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { Agent } from 'undici'
import { chat } from '../../src/cli/chat.ts'
import { CommandFailed, UsageError } from '../../src/cli/command.ts'
import { capturing, type Printed } from '../support/printed.ts'
import { scriptedServer, sendEvents, type ReceivedRequest } from '../support/scripted-server.ts'
import { scriptedService } from '../support/scripted-service.ts'
import { eventually } from '../support/waiting.ts'

const CHAT = '/api/v1/chat/completions'
const model = (id: string, category: string, changes: object = {}) => ({
  id,
  model_categories: [category],
  endpoints: ['/chat/completions'],
  available: true,
  ...changes,
})
const listed = [
  { ...model('a/embed', 'embedding'), endpoints: ['/embeddings'] },
  model('a/vision', 'vlm'),
  model('a/talk', 'llm'),
  model('a/other', 'llm'),
]
const piece = (content: string) => ({ choices: [{ delta: { content } }] })

interface Stage {
  readonly dataDir: string
  readonly asked: readonly ReceivedRequest[]
  /** What happened to the lent key. */
  readonly lent: readonly string[]
  /** Runs the command; the next line is typed when the prompt is there again. */
  chat(lines: readonly string[], ...args: readonly string[]): Promise<Printed>
}

async function stage(
  t: TestContext,
  answers: Readonly<Record<string, (asked: ReceivedRequest, response: ServerResponse) => unknown>> = {},
): Promise<Stage> {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-chat-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const known: typeof answers = {
    '/api/v1/models': () => ({ data: listed }),
    [CHAT]: (_asked, response) => sendEvents(response, [piece('Hé'), {}, piece('llo'), '[DONE]']),
    ...answers,
  }
  const server = await scriptedServer(t, (asked, response) => {
    const [path = '', query] = asked.path.split('?')
    if (query !== undefined) {
      const found = listed.find(({ id }) => query === `slug=${encodeURIComponent(id)}`)
      if (!found) response.statusCode = 404
      return found ?? { error: { message: 'no' } }
    }
    return known[path]?.(asked, response)
  })
  const lent: string[] = []
  const lendKey = (workspace: string) => {
    if (workspace === 'nobody') throw new Error('There is no workspace "nobody".')
    lent.push(workspace)
    return { key: 'weir_lent', end: () => void lent.push('end') }
  }
  await scriptedService(t, dataDir, { lendKey }, server.url)
  return {
    dataDir,
    asked: server.asked,
    lent,
    async chat(lines, ...args) {
      const input = new PassThrough()
      const { stdin } = process
      Object.defineProperty(process, 'stdin', { value: input, configurable: true })
      try {
        return await capturing(async () => {
          const written = process.stdout.write
          const left = [...lines]
          process.stdout.write = (text: string | Uint8Array) => {
            if (text === '> ') setImmediate(() => (left.length > 0 ? input.write(`${left.shift()}\n`) : input.end()))
            return written.call(process.stdout, text)
          }
          await chat.run([...args, '--data', dataDir])
          assert.ok(input.isPaused(), 'nothing more is read from the terminal')
        })
      } finally {
        Object.defineProperty(process, 'stdin', { value: stdin, configurable: true })
      }
    },
  }
}

const bodies = ({ asked }: Stage) => asked.filter(({ method }) => method === 'POST').map(({ body }) => body)

describe('weir chat', () => {
  it('shows the answer as it arrives, keeps the conversation, and returns the key', async (t) => {
    const weir = await stage(t)
    const { stdout, failure } = await weir.chat([' Hi ', '//slash', ''])
    assert.equal(failure, undefined)
    assert.equal(
      stdout,
      'Chatting with a/talk. An empty line ends the chat; /help lists the commands.\n> Héllo\n> Héllo\n> ',
    )
    const said = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Héllo' },
      { role: 'user', content: '/slash' },
    ]
    assert.deepEqual(bodies(weir), [
      { model: 'a/talk', messages: said.slice(0, 1), stream: true },
      { model: 'a/talk', messages: said, stream: true },
    ])
    assert.ok(weir.asked.every(({ headers }) => headers.authorization === 'Bearer weir_lent'))
    await eventually('the key has ended', () => weir.lent.length === 2)
    assert.deepEqual(weir.lent, ['default', 'end'])
  })

  it('waits for an answer without a limit of time', async (t) => {
    const dispatched = t.mock.method(Agent.prototype, 'dispatch')
    const weir = await stage(t)
    await weir.chat(['Hi'])
    const { headersTimeout, bodyTimeout } =
      dispatched.mock.calls.map((call) => call.arguments[0]).find(({ method }) => method === 'POST') ?? {}
    assert.deepEqual([headersTimeout, bodyTimeout], [0, 0])
  })

  it('ends with /exit, and with the end of the input', async (t) => {
    const weir = await stage(t)
    for (const lines of [['/exit', 'never sent'], []]) {
      const { stdout, failure } = await weir.chat(lines, 'a/other', '--workspace', 'acme')
      assert.equal(failure, undefined)
      assert.match(stdout, /^Chatting with a\/other\. .*\n> $/)
    }
    assert.deepEqual(bodies(weir), [])
    assert.equal(weir.lent[0], 'acme')
  })

  it('reads every line of an input that arrives before the prompt', async (t) => {
    const weir = await stage(t)
    const { stdout } = await weir.chat(['one\ntwo\nthree'])
    assert.equal(stdout.match(/Héllo/g)?.length, 3)
    assert.deepEqual(
      bodies(weir)[2].messages.map(({ content }: { content: string }) => content),
      ['one', 'Héllo', 'two', 'Héllo', 'three'],
    )
  })

  it('runs commands, which are not sent to the model', async (t) => {
    const weir = await stage(t)
    const lines = ['Hi', '/clear', '/model', '/model a/other', '/model a/embed', '/model no', '/help', '/what', 'Ho']
    const { stdout, failure } = await weir.chat(lines)
    assert.equal(failure, undefined)
    assert.equal(
      stdout,
      `Chatting with a/talk. An empty line ends the chat; /help lists the commands.
> Héllo
> The conversation so far is forgotten.
> Chatting with a/talk. /model NAME goes on with another one:
  a/vision
  a/talk
  a/other
> Chatting with a/other.
> a/embed cannot chat: its category is embedding
> there is no model "no"; weir models list shows the models
>   /help           show these commands
  /model [NAME]   show the models, or go on with another one
  /clear          forget the conversation so far
  /exit           end the chat; so does an empty line
  //text          send "/text" to the model
> There is no command /what. /help lists them; //text sends a line that begins with a slash.
> Héllo
> `,
    )
    assert.deepEqual(bodies(weir).at(-1), {
      model: 'a/other',
      messages: [{ role: 'user', content: 'Ho' }],
      stream: true,
    })
  })

  it('chooses any model that can chat if there is no language model, and reports if there is none', async (t) => {
    const vision = await stage(t, { '/api/v1/models': () => ({ data: listed.slice(0, 2) }) })
    assert.match((await vision.chat([])).stdout, /^Chatting with a\/vision\./)
    const none = 'no chat model can be called now; weir models list shows the models and their state'
    const refusing = (_asked: ReceivedRequest, response: ServerResponse) => {
      response.statusCode = 500
      return { data: listed }
    }
    for (const answer of [() => ({ data: listed.slice(0, 1) }), refusing]) {
      const { failure } = await (await stage(t, { '/api/v1/models': answer })).chat([])
      assert.ok(failure instanceof CommandFailed)
      assert.equal(failure.message, none)
    }
  })

  it('refuses a model that cannot chat before anything is typed', async (t) => {
    const away = [
      model('b/away', 'llm', { available: false }),
      model('b/gone', 'llm', { available: false, unavailable_message: 'gone' }),
    ]
    listed.push(...away)
    t.after(() => listed.splice(-away.length))
    const weir = await stage(t)
    const failed = async (...args: readonly string[]): Promise<readonly unknown[]> => {
      const { failure, stdout } = await weir.chat([], ...args)
      assert.equal(stdout, '')
      return [failure?.constructor, failure?.message]
    }
    assert.deepEqual(await failed('a b'), [UsageError, 'there is no model "a b"; weir models list shows the models'])
    assert.deepEqual(await failed('a/embed'), [UsageError, 'a/embed cannot chat: its category is embedding'])
    assert.deepEqual(await failed('b/away'), [CommandFailed, 'b/away cannot be called now'])
    assert.deepEqual(await failed('b/gone'), [CommandFailed, 'gone'])
    assert.deepEqual(await failed('--workspace', 'nobody'), [
      CommandFailed,
      'There is no workspace "nobody". Choose another one with --workspace.',
    ])
    assert.deepEqual(await failed('a/talk', 'more'), [
      UsageError,
      'unexpected argument "more"; put names with spaces in quotes',
    ])
    const empty = mkdtempSync(join(tmpdir(), 'weir-chat-'))
    t.after(() => rmSync(empty, { recursive: true }))
    const { failure } = await capturing(() => chat.run(['--data', empty]))
    assert.ok(failure instanceof UsageError)
    assert.equal(
      failure.message,
      `no service is running on ${empty}; start it with npm start, or name another with --data`,
    )
  })

  it('explains why an answer is missing or incomplete, and returns the key', async (t) => {
    const refused = await stage(t, {
      [CHAT]: (_asked, response) => {
        response.statusCode = 429
        return { error: { message: 'Too many requests.' } }
      },
    })
    const first = await refused.chat(['Hi'])
    assert.ok(first.failure instanceof CommandFailed)
    assert.equal(first.failure.message, 'Too many requests.')
    await eventually('the key has ended', () => refused.lent.includes('end'))
    const broken = await stage(t, {
      [CHAT]: (_asked, response) => sendEvents(response, [piece('Hé'), { error: { message: 'the engine died' } }]),
    })
    const second = await broken.chat(['Hi'])
    assert.match(second.stdout, /> Hé$/)
    assert.ok(second.failure instanceof CommandFailed)
    assert.equal(second.failure.message, 'the answer broke off: the engine died')
    const cut = await stage(t, { '/api/v1/models': (_asked, response) => void response.destroy() })
    const third = await cut.chat([])
    assert.ok(third.failure instanceof CommandFailed)
    assert.match(third.failure.message, /^the service does not answer \(.+\); see its log$/)
    const gone = await stage(t, {
      '/api/v1/models': ({ headers }, response) => void (headers['x'] ? undefined : response.end('no JSON')),
    })
    const fourth = await gone.chat([])
    assert.ok(fourth.failure instanceof SyntaxError)
  })
})
