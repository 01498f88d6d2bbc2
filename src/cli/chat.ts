import { createInterface } from 'node:readline'
import { Agent, request } from 'undici'
import { eventSplitter } from '../shared/event-stream.ts'
import { borrowKey, findService } from '../operate/running-service.ts'
import { CommandFailed, configOf, parseFlags, UsageError, type Command } from './command.ts'
import { viewOn } from './terminal/view.ts'

interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/** How a chat reaches the service. */
interface Connection {
  readonly url: string
  readonly key: string
  readonly dispatcher: Agent
}

const WORKSPACE = 'default'

const CHAT_HELP = `  /help           show these commands
  /model [NAME]   show the models, or go on with another one
  /clear          forget the conversation so far
  /exit           end the chat; so does an empty line
  //text          send "/text" to the model`

export const chat: Command = {
  summary: 'chat with a model in the terminal',
  help: `weir chat [MODEL] [--workspace W]

Chats with a model of the running service. MODEL defaults to the first chat
model that is ready. End the chat with an empty line or Ctrl-D. The service
lends the command a key for as long as the chat lasts; nothing is left of it.
In the chat:

${CHAT_HELP}

  --workspace W   who pays for the chat (default: ${WORKSPACE})`,
  async run(args) {
    const flags = parseFlags(args, { workspace: 'string' }, 1)
    const { dataDir } = configOf(flags)
    const service = findService(dataDir)
    if (!service) {
      throw new UsageError(`no service is running on ${dataDir}; start it with npm start, or name another with --data`)
    }
    const lent = await borrowKey(dataDir, flags.text('workspace') ?? WORKSPACE).catch(unanswered)
    if (!lent) throw new CommandFailed('the service has just stopped')
    if ('error' in lent) throw new CommandFailed(`${lent.error} Choose another one with --workspace.`)
    try {
      // The service is on this machine, but its certificate is for its public name.
      const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
      const connection = { url: service.url, key: lent.key, dispatcher }
      await converse(connection, await chosenModel(connection, flags.positionals[0]).catch(unanswered))
    } finally {
      await lent.end()
    }
  },
}

/** Explains the failure of a service that stops or does not answer; rethrows anything else. */
function unanswered(error: unknown): never {
  if (!(error instanceof Error) || !('code' in error)) throw error
  throw new CommandFailed(`the service does not answer (${error.message}); see its log`, { cause: error })
}

interface ListedModel {
  readonly id: string
  readonly model_categories: readonly string[]
  readonly endpoints: readonly string[]
  readonly available: boolean
  readonly unavailable_message?: string
}

async function get({ url, key, dispatcher }: Connection, path: string): Promise<unknown> {
  const response = await request(`${url}/api/v1${path}`, { dispatcher, headers: { authorization: `Bearer ${key}` } })
  const body = await response.body.json()
  return response.statusCode === 200 ? body : undefined
}

const canChat = ({ endpoints }: ListedModel): boolean => endpoints.includes('/chat/completions')

/** Models that can be called now. */
async function chatModels(connection: Connection): Promise<readonly ListedModel[]> {
  const { data } = ((await get(connection, '/models')) ?? { data: [] }) as { data: readonly ListedModel[] }
  return data.filter(canChat)
}

/** Refuses a model that cannot chat before anything is typed. */
async function chosenModel(connection: Connection, name: string | undefined): Promise<string> {
  if (name === undefined) {
    const models = await chatModels(connection)
    const first = models.find((it) => it.model_categories.includes('llm')) ?? models[0]
    if (first) return first.id
    throw new CommandFailed('no chat model can be called now; weir models list shows the models and their state')
  }
  const model = (await get(connection, `/models/detail?slug=${encodeURIComponent(name)}`)) as ListedModel | undefined
  if (!model) throw new UsageError(`there is no model "${name}"; weir models list shows the models`)
  if (!canChat(model)) {
    throw new UsageError(`${model.id} cannot chat: its category is ${model.model_categories.join(' and ')}`)
  }
  if (!model.available) throw new CommandFailed(model.unavailable_message ?? `${model.id} cannot be called now`)
  return model.id
}

interface Chat {
  model: string
  messages: Message[]
}

async function converse(connection: Connection, model: string): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const { paint } = viewOn(process.stdout)
  const printNote = (note: string): void => void process.stdout.write(`${paint('dim', note)}\n`)
  const chat: Chat = { model, messages: [] }
  let hasEnded = false
  terminal.once('close', () => (hasEnded = true))
  const prompt = (): void => (hasEnded ? undefined : terminal.prompt())
  printNote(`Chatting with ${model}. An empty line ends the chat; /help lists the commands.`)
  try {
    prompt()
    // Lines that are typed or pasted during an answer are queued.
    for await (const typed of terminal) {
      const line = typed.trim()
      if (line === '' || line === '/exit') return
      if (line.startsWith('/') && !line.startsWith('//')) printNote(await obey(line, chat, connection))
      else {
        chat.messages.push({ role: 'user', content: line.replace(/^\/\//, '/') })
        chat.messages.push({ role: 'assistant', content: await answer(connection, chat.model, chat.messages) })
      }
      prompt()
    }
  } finally {
    terminal.close()
  }
}

/** Runs a command such as "/clear", and returns the text to show. Nothing is sent to the model. */
async function obey(line: string, chat: Chat, connection: Connection): Promise<string> {
  const [command, name] = line.split(/\s+/, 2)
  switch (command) {
    case '/help':
      return CHAT_HELP
    case '/clear':
      chat.messages = []
      return 'The conversation so far is forgotten.'
    case '/model': {
      if (name === undefined) {
        const others = (await chatModels(connection).catch(unanswered)).map(({ id }) => id)
        return [`Chatting with ${chat.model}. /model NAME goes on with another one:`, ...others].join('\n  ')
      }
      try {
        chat.model = await chosenModel(connection, name)
      } catch (error) {
        if (error instanceof UsageError || error instanceof CommandFailed) return error.message
        return unanswered(error)
      }
      return `Chatting with ${chat.model}.`
    }
    default:
      return `There is no command ${command}. /help lists them; //text sends a line that begins with a slash.`
  }
}

async function answer(
  { url, key, dispatcher }: Connection,
  model: string,
  messages: readonly Message[],
): Promise<string> {
  const response = await request(`${url}/api/v1/chat/completions`, {
    dispatcher,
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
