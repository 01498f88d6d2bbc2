import { HEADROOM, parseJsonObject, scanJson, type JsonBody } from '../../src/core/json/json-body.ts'
import { finish, type WaitingWork } from '../../src/core/sliced-work.ts'

/** Work that the service does in slices, done at once. */
export async function finished<Result>(work: WaitingWork<Result>): Promise<Result> {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    await step.value
  }
}

/** A body as the endpoints get it. */
export function parsedBody(text: string): JsonBody {
  const bytes = Buffer.concat([Buffer.alloc(HEADROOM), Buffer.from(text)])
  return finish(parseJsonObject(bytes, finish(scanJson(bytes))))
}
