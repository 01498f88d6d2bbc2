import { createInterface } from 'node:readline/promises'
import { request } from 'undici'
import { eventSplitter } from '../core/event-stream.ts'
import { findService } from '../running-service.ts'
import { configOf, parseFlags, UsageError, withBooks, type Command, type Flags } from './command.ts'

interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

const WORKSPACE = 'default'

export const chat: Command = {
  summary: 'chat with a model in the terminal',
  help: `weir chat [MODEL]

Chats with a model of the running service. MODEL defaults to the first chat
model that is ready. End the chat with an empty line or Ctrl-D. The command
creates an API key in the workspace "${WORKSPACE}" and revokes it at the end.`,
  async run(args) {
    const flags = parseFlags(args, {}, 1)
    const service = findService(configOf(flags).dataDir)
    if (!service) throw new UsageError('no service is running on this data directory; start it with npm start')
    const { id, key } = await withBooks(flags, { changes: true }, ({ accounts }) => accounts.createKey(WORKSPACE))
    try {
      const model = flags.positionals[0] ?? (await firstChatModel(service.url, key))
      await converse(service.url, key, model)
    } finally {
      await revoke(flags, id)
    }
  },
}

async function revoke(flags: Flags, id: string): Promise<void> {
  await withBooks(flags, { changes: true }, ({ accounts }) => accounts.revokeKey(id))
}

async function firstChatModel(url: string, key: string): Promise<string> {
  const response = await request(`${url}/api/v1/models?category=llm`, { headers: { authorization: `Bearer ${key}` } })
  const { data } = (await response.body.json()) as { data: { id: string }[] }
  if (data[0]) return data[0].id
  throw new UsageError('no chat model is ready; weir models list shows the models')
}

async function converse(url: string, key: string, model: string): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const messages: Message[] = []
  process.stdout.write(`Chatting with ${model}. An empty line ends the chat.\n`)
  try {
    for (;;) {
      const content = await ask(terminal)
      if (content === '') return
      messages.push({ role: 'user', content })
      messages.push({ role: 'assistant', content: await answer(url, key, model, messages) })
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

async function answer(url: string, key: string, model: string, messages: readonly Message[]): Promise<string> {
  const response = await request(`${url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, stream: true }),
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  if (response.statusCode !== 200) {
    const { error } = (await response.body.json()) as { error: { message: string } }
    throw new UsageError(error.message)
  }
  const split = eventSplitter()
  let text = ''
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    for (const event of split(chunk)) {
      const piece = contentOf(event)
      process.stdout.write(piece)
      text += piece
    }
  }
  process.stdout.write('\n')
  return text
}

function contentOf(event: string): string {
  if (event === '[DONE]') return ''
  const chunk = JSON.parse(Buffer.from(event, 'latin1').toString('utf8')) as {
    choices?: { delta?: { content?: string } }[]
    error?: { message: string }
  }
  if (chunk.error) throw new Error(chunk.error.message)
  return chunk.choices?.[0]?.delta?.content ?? ''
}
