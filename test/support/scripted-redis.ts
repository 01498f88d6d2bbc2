import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { freePort } from './free-port.ts'

/** A command as it arrived. */
export interface ReceivedCommand {
  readonly name: string
  readonly values: readonly string[]
  readonly socket: Socket
}

/** A reply in the protocol of Redis. A held command is answered later, with `reply`. */
export type Reply = string | number | null | Error | readonly Reply[]
export const HELD = Symbol('held')

/** A server that speaks Redis' protocol and answers what the test says. */
export async function scriptedRedis(answer: (command: ReceivedCommand) => Reply | typeof HELD | undefined) {
  const sockets = new Set<Socket>()
  const received: ReceivedCommand[] = []
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      for (let taken = takeCommand(text); taken; taken = takeCommand(text)) {
        text = text.slice(taken.length)
        const [name = '', ...values] = taken.words
        const command = { name: name.toLowerCase(), values, socket }
        received.push(command)
        const given = answer(command)
        if (given !== HELD) socket.write(given === undefined ? usual(command) : encoded(given))
      }
    })
  })
  server.listen(await freePort(), '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    url: `redis://127.0.0.1:${port}`,
    received,
    sockets,
    reply: (command: ReceivedCommand, reply: Reply) => void command.socket.write(encoded(reply)),
    /** To the connection that has subscribed. */
    publish(channel: string, message: string): void {
      const subscribed = received.findLast(({ name, socket }) => name === 'subscribe' && !socket.destroyed)
      subscribed?.socket.write(encoded(['message', channel, message]))
    },
    cut: () => sockets.forEach((socket) => socket.destroy()),
    /** From now on the machine refuses connections. */
    async close() {
      sockets.forEach((socket) => socket.destroy())
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}

/** The words of the first command, if it is complete. */
function takeCommand(text: string): { readonly words: readonly string[]; readonly length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (!head) return undefined
  const words: string[] = []
  let at = head[0].length
  for (let word = 0; word < Number(head[1]); word += 1) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at))
    if (!size) return undefined
    const start = at + size[0].length
    const end = start + Number(size[1])
    if (text.length < end + 2) return undefined
    words.push(text.slice(start, end))
    at = end + 2
  }
  return { words, length: at }
}

function usual({ name, values }: ReceivedCommand): string {
  if (name === 'info') return encoded('redis_version:7.0.0\r\nrun_id:server-1\r\nloading:0\r\n')
  if (name === 'ping') return encoded(['pong', ''])
  if (name === 'subscribe') return values.map((channel, index) => encoded(['subscribe', channel, index + 1])).join('')
  return encoded('OK')
}

function encoded(reply: Reply): string {
  if (reply === null) return '$-1\r\n'
  if (typeof reply === 'number') return `:${reply}\r\n`
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`
  if (reply instanceof Error) return `-${reply.message}\r\n`
  return `*${reply.length}\r\n${reply.map(encoded).join('')}`
}
