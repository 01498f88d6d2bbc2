import { after, type TestContext } from 'node:test'
import { chatStage, stageConfig, type ChatStage, type StageOptions } from './chat-stage.ts'
import { scriptedEngine } from './scripted-engine.ts'
import { ledgerOf, startWeir, type TestWeir } from './weir.ts'

/** One service for all tests of a file. Its start would cost each test more than the test itself. */
let started: Promise<TestWeir> | undefined
after(async () => (await started)?.stop())
let stages = 0

/**
 * A chat stage for tests that only call the service. Each has an engine and a workspace of its own: its key, its rate and
 * its ledger are those of the workspace. Not for tests that run side by side, because the model is the same for all.
 */
export async function sharedStage(t: TestContext, options: StageOptions = {}): Promise<ChatStage> {
  if (options.config) return chatStage(t, options)
  const engine = await scriptedEngine()
  t.after(() => engine.close())
  engine.script = options.script ?? {}
  const config = stageConfig([engine.url], options)
  started ??= startWeir(config)
  const weir = await started
  weir.writeConfig(config)
  await made(weir.reload())
  const name = `stage ${++stages}`
  const { id } = await made<{ id: string }>(weir.admin('POST', '/admin/v1/workspaces', { name }))
  const { key } = await made<{ key: string }>(weir.admin('POST', '/admin/v1/keys', { workspace: name }))
  const ofWorkspace: TestWeir = {
    ...weir,
    key,
    call: (path, init) => weir.call(path, { key, ...init }),
    chat: (body, init) => weir.chat(body, { key, ...init }),
    ledger: () => ledgerOf(weir.dataDir, id),
  }
  return { weir: ofWorkspace, engine }
}

async function made<Body>(answer: Promise<Response>): Promise<Body> {
  const response = await answer
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as Body
}
