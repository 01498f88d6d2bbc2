import assert from 'node:assert/strict'
import { Session } from 'node:inspector/promises'
import { describe, it } from 'node:test'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, readEvents, startWeir, type TestWeir } from '../support/weir.ts'

/** Who wants to understand a streamed chat has to read this many files at most. */
const MAX_FILES = 70

/** Work in the background, such as a health check, runs during some of them, but not during all. */
const CHATS = 10

const sources = new URL('../../src/', import.meta.url).href

/** The functions that have run since the last call, by file of src/. What is loaded or started before is not among them. */
async function functionsRun(session: Session): Promise<Map<string, readonly string[]>> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const files = result.filter(({ url }) => url.startsWith(sources))
  const run = files.map(({ url, functions }): [string, readonly string[]] => [
    url.slice(sources.length),
    functions.filter(({ ranges }) => ranges.some(({ count }) => count > 0)).map((it) => it.functionName || 'anonymous'),
  ])
  return new Map(run.filter(([, functions]) => functions.length > 0))
}

async function streamedChat(weir: TestWeir): Promise<void> {
  const events = await readEvents(await weir.chat({ stream: true, messages: [{ role: 'user', content: 'Hi' }] }))
  assert.equal(events.at(-1), '[DONE]')
}

describe('a streamed chat', () => {
  it(`runs through at most ${MAX_FILES} files of src/`, async (t) => {
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const weir = await startWeir({ models: [modelEntry([engine.url])] })
    t.after(() => weir.stop())
    // The first chat also looks its key up in the database, and connects to the engine.
    await streamedChat(weir)
    const session = new Session()
    session.connect()
    t.after(() => session.disconnect())
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

    const chats: Map<string, readonly string[]>[] = []
    for (let chat = 0; chat < CHATS; chat++) {
      await functionsRun(session)
      await streamedChat(weir)
      chats.push(await functionsRun(session))
    }
    const [first = new Map<string, readonly string[]>(), ...others] = chats
    const files = [...first].filter(([file]) => others.every((chat) => chat.has(file)))
    const list = files
      .map(([file, functions]) => `${file}: ${functions.join(', ')}`)
      .toSorted()
      .join('\n')
    t.diagnostic(`${files.length} files`)
    assert.ok(first.has('inference/pipeline/pipeline.ts') && first.has('ledger/journal/journal.ts'), list)
    assert.ok(files.length <= MAX_FILES, `${files.length} files\n${list}`)
  })
})
