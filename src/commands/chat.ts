import { createInterface } from 'node:readline/promises'
import { request } from 'undici'
import { eventSplitter } from '../core/event-stream.ts'
import { borrowKey, findService } from '../running-service.ts'
import { CommandFailed, configOf, parseFlags, text, UsageError, type Command } from './command.ts'
import { viewOn } from './terminal/view.ts'

interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/** How a chat reaches the service. */
interface Connection {
  readonly url: string
  readonly key: string
}

const WORKSPACE = 'default'

export const chat: Command = {
  summary: 'chat with a model in the terminal',
  help: `weir chat [MODEL] [--workspace W]

Chats with a model of the running service. MODEL defaults to the first chat
model that is ready. End the chat with an empty line or Ctrl-D. The service
lends the command a key for as long as the chat lasts; nothing is left of it.

  --workspace W   who pays for the chat (default: ${WORKSPACE})`,
  async run(args) {
    const flags = parseFlags(args, { workspace: 'string' }, 1)
    const { dataDir } = configOf(flags)
    const service = findService(dataDir)
    if (!service) {
      throw new UsageError(`no service is running on ${dataDir}; start it with npm start, or name another with --data`)
    }
    const lent = await borrowKey(dataDir, text(flags, 'workspace') ?? WORKSPACE).catch(unanswered)
    if (!lent) throw new CommandFailed('the service has just stopped')
    if ('error' in lent) throw new CommandFailed(`${lent.error} Choose another one with --workspace.`)
    try {
      const connection = { url: service.url, key: lent.key }
      await converse(connection, await chosenModel(connection, flags.positionals[0]).catch(unanswered))
    } finally {
      await lent.end()
    }
  },
}

/** A service that stops or does not answer is explained; anything else is passed on. */
function unanswered(error: unknown): never {
  if (!(error instanceof Error) || !('code' in error)) throw error
  throw new CommandFailed(`the service does not answer (${error.message}); see its log`, { cause: error })
}

interface ListedModel {
  readonly id: string
  readonly model_categories: readonly string[]
  readonly endpoints: readonly string[]
  readonly available: boolean
}

/** Refuses a model that cannot chat before anything is typed. */
async function chosenModel({ url, key }: Connection, name: string | undefined): Promise<string> {
  const get = async (path: string): Promise<unknown> => {
    const response = await request(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } })
    const body = await response.body.json()
    return response.statusCode === 200 ? body : undefined
  }
  const canChat = ({ endpoints }: ListedModel): boolean => endpoints.includes('/chat/completions')
  if (name === undefined) {
    const { data } = ((await get('/models')) ?? { data: [] }) as { data: readonly ListedModel[] }
    const first = data.find((it) => it.model_categories.includes('llm')) ?? data.find(canChat)
    if (first) return first.id
    throw new CommandFailed('no chat model is ready yet; weir models list shows the models and their state')
  }
  const model = (await get(`/models/detail?slug=${encodeURIComponent(name)}`)) as ListedModel | undefined
  if (!model) throw new UsageError(`there is no model "${name}"; weir models list shows the models`)
  if (!canChat(model)) {
    throw new UsageError(`${model.id} cannot chat: its category is ${model.model_categories.join(' and ')}`)
  }
  if (!model.available) throw new CommandFailed(`${model.id} is not ready; weir models list shows its state`)
  return model.id
}

async function converse(connection: Connection, model: string): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const { paint } = viewOn(process.stdout)
  const messages: Message[] = []
  process.stdout.write(paint('dim', `Chatting with ${model}. An empty line ends the chat.\n`))
  try {
    for (;;) {
      const content = await ask(terminal)
      if (content === '') return
      messages.push({ role: 'user', content })
      messages.push({ role: 'assistant', content: await answer(connection, model, messages) })
    }
  } finally {
    terminal.close()
  }
}

/** Returns '' at the end of the input, which ends the chat. */
async function ask(terminal: ReturnType<typeof createInterface>): Promise<string> {
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  const line = terminal.question('> ').catch(() => '')
  return (await Promise.race([line, closed])).trim()
}

async function answer({ url, key }: Connection, model: string, messages: readonly Message[]): Promise<string> {
  const response = await request(`${url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, stream: true }),
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  if (response.statusCode !== 200) {
    const { error } = (await response.body.json()) as { error: { message: string } }
    throw new CommandFailed(error.message)
  }
  let answered = ''
  const split = eventSplitter((event) => {
    const piece = contentOf(event)
    process.stdout.write(piece)
    answered += piece
    return true
  })
  for await (const chunk of response.body as AsyncIterable<Buffer>) split(chunk)
  process.stdout.write('\n')
  return answered
}

function contentOf(event: string): string {
  if (event === '[DONE]') return ''
  const chunk = JSON.parse(Buffer.from(event, 'latin1').toString('utf8')) as {
    choices?: { delta?: { content?: string } }[]
    error?: { message: string }
  }
  if (chunk.error) throw new CommandFailed(`the answer broke off: ${chunk.error.message}`)
  return chunk.choices?.[0]?.delta?.content ?? ''
}
