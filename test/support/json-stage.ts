import type { TestContext } from 'node:test'
import type { ChatStage, StageOptions } from './chat-stage.ts'
import type { EngineCallSeen } from './scripted-engine.ts'
import { sharedStage } from './shared-stage.ts'

/** A shared stage with one model of any category, and an engine that answers each call with some JSON. */
export interface JsonStage extends ChatStage {
  post(path: string, body: object, init?: RequestInit): Promise<Response>
  /** What the engine answers from now on. */
  answer(make: (call: EngineCallSeen) => unknown): void
}

export async function jsonStage(t: TestContext, options: StageOptions = {}): Promise<JsonStage> {
  const stage = await sharedStage(t, options)
  return {
    ...stage,
    post: (path, body, init) =>
      stage.weir.call(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'meta/test-8b', ...body }),
        ...init,
      }),
    answer(make) {
      stage.engine.script = {
        handle(call, response) {
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(make(call)))
        },
      }
    },
  }
}
