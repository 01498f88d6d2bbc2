import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'

/** Where `npm run install:engines` installs the servers. CONTRIBUTING.md describes the layout. */
const directory =
  process.env['WEIR_ENGINES_DIR'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'weir', 'engines')

/** A file or program of an installed server, such as `llamacpp/bin/python`. */
export function engineFile(name: string): string {
  return join(directory, name)
}

/** For a suite's `skip`: false when everything is here, otherwise the reason. */
export function missing(...names: readonly string[]): string | false {
  const absent = names.filter((name) => !existsSync(engineFile(name)))
  return absent.length > 0 && `${absent.join(' and ')} not found in ${directory}; npm run install:engines installs it`
}

export interface EngineProgram {
  /** Relative to the directory of the engines. */
  readonly program: string
  readonly args: (port: number) => readonly string[]
  readonly environment?: (port: number) => NodeJS.ProcessEnv
  /** Answers with status 200 as soon as the server is ready. */
  readonly readyPath: string
}

export interface EngineProcess {
  /** Without a path. */
  readonly origin: string
  stop(): Promise<void>
}

/** Loading a model takes seconds, importing a Python server can take a minute on a busy machine. */
const READY_WITHIN_MS = 180_000
const LOG_CHARACTERS = 4000

/** Starts a real server on loopback and waits until it is ready. */
export async function startEngine({ program, args, environment, readyPath }: EngineProgram): Promise<EngineProcess> {
  const port = await freePort()
  const child = spawn(engineFile(program), args(port), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment?.(port) },
  })
  let log = ''
  const keep = (chunk: Buffer): void => void (log = (log + chunk.toString()).slice(-LOG_CHARACTERS))
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      log += String(error)
      resolve()
    })
    child.once('exit', () => resolve())
  })
  let isRunning = true
  void ended.then(() => (isRunning = false))

  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    const killer = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(killer)
  }
  const origin = `http://127.0.0.1:${port}`
  const until = performance.now() + READY_WITHIN_MS
  while (!(await isReady(origin + readyPath))) {
    if (isRunning && performance.now() < until) {
      await sleep(200)
      continue
    }
    await stop()
    throw new Error(`${program} did not start:\n${log}`)
  }
  return { origin, stop }
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).status === 200
  } catch {
    return false
  }
}
