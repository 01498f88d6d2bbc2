import type { TestContext } from 'node:test'
import { scriptedEngine, type ScriptedEngine } from './scripted-engine.ts'
import { eventually } from './waiting.ts'
import { modelEntry, startWeir, type TestWeir } from './weir.ts'

/** The real service with one chat model, and the engine behind it. */
export interface ChatStage {
  readonly weir: TestWeir
  readonly engine: ScriptedEngine
}

export interface StageOptions {
  readonly script?: ScriptedEngine['script']
  /** Changes to the model's entry. */
  readonly model?: object
  /** Changes to the description of its engine. */
  readonly engine?: object
  /** Changes to the limits of its queue. */
  readonly limits?: object
  /** Changes to the rest of weir.yaml. With any, even none (`{}`), a shared stage starts a service of its own. */
  readonly config?: object
}

export const roomyLimits = {
  token_budget: 100_000,
  max_concurrent_requests: 8,
  max_queue_depth: 16,
  max_wait_ms: 10_000,
}

export function stageConfig(urls: readonly string[], options: StageOptions = {}): object {
  const serverless = {
    engine: { kind: 'openai', urls, model: 'engine-name', ...options.engine },
    limits: { ...roomyLimits, ...options.limits },
  }
  return {
    server: { port: 0, admin_port: 0, drain_ms: 500 },
    rate_limit: { requests_per_minute: 100_000 },
    models: [modelEntry(urls, { serverless, ...options.model })],
    ...options.config,
  }
}

/** Set up for one test, and taken down after it. */
export async function chatStage(t: TestContext, options: StageOptions = {}): Promise<ChatStage> {
  const engine = await scriptedEngine()
  engine.script = options.script ?? {}
  let weir: TestWeir | undefined
  t.after(async () => {
    try {
      await weir?.stop()
    } finally {
      await engine.close()
    }
  })
  weir = await startWeir(stageConfig([engine.url], options))
  return { weir, engine }
}

/** How the stage's only request was settled. Waits until it is. */
export async function onlyOutcome({ weir }: ChatStage): Promise<string> {
  await eventually('the request is settled', async () => (await weir.ledger()).length > 0)
  return (await weir.ledger()).map(({ outcome }) => outcome).join()
}

/** The parts of an error answer that a caller goes by. */
export async function refusalOf(response: Response): Promise<{
  status: number
  code: string
  param: string | null
  type: string
  message: string
  retryAfter: string | null
}> {
  const { error } = (await response.json()) as {
    error: { message: string; type: string; param: string | null; code: string }
  }
  return { status: response.status, retryAfter: response.headers.get('retry-after'), ...error }
}
