import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'
import { eventually } from './waiting.ts'

/** A real redis-server on loopback, with a folder of its own. */
export interface RedisServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Faster than the port. */
  readonly socket: string
  /** Ends the process at once, as a crash would. */
  kill(): Promise<void>
  /** Starts it again, on what it had saved or with nothing. */
  start(): Promise<void>
  /** Writes everything to disk, for the next start. */
  save(): Promise<void>
  signal(name: NodeJS.Signals): void
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

export async function startRedis(): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-redis-'))
  const socket = join(folder, 'redis.sock')
  const port = await freePort()
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    const options = ['--port', port, '--bind', '127.0.0.1', '--unixsocket', socket, '--dir', folder]
    const started = spawn('redis-server', [...options.map(String), '--save', '', '--appendonly', 'no'], {
      stdio: 'ignore',
    })
    child = started
    await eventually('redis-server answers', async () => {
      if (started.exitCode !== null) throw new Error(`redis-server ended with ${started.exitCode}`)
      return (await ask((redis) => redis.ping()).catch(() => '')) === 'PONG'
    })
  }

  async function ask<Answer>(question: (redis: Redis) => Promise<Answer>): Promise<Answer> {
    const redis = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => null })
    redis.on('error', () => {})
    try {
      await redis.connect()
      return await question(redis)
    } finally {
      redis.disconnect()
    }
  }

  async function kill(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const over = once(child, 'exit')
    child.kill('SIGKILL')
    await over
  }

  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return child?.pid ?? 0
    },
    socket,
    start,
    kill,
    save: async () => void (await ask((redis) => redis.save())),
    signal: (name) => void child?.kill(name),
    async remove() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
