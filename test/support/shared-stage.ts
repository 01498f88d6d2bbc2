import { after, type TestContext } from 'node:test'
import { chatStage, stageConfig, type ChatStage, type StageOptions } from './chat-stage.ts'
import { scriptedEngine } from './scripted-engine.ts'
import { ledgerOf, startWeir, type TestWeir } from './weir.ts'

/** One service for all tests of a process. Its start would cost each test more than the test itself. */
let started: Promise<TestWeir> | undefined
after(async () => (await started)?.stop())
let stages = 0

/** A chat stage for tests that only call the service. Each has an engine of its own, and what `sharedWeir` gives it. */
export async function sharedStage(t: TestContext, options: StageOptions = {}): Promise<ChatStage> {
  if (options.config) return chatStage(t, options)
  const engine = await scriptedEngine()
  t.after(() => engine.close())
  engine.script = options.script ?? {}
  return { weir: await sharedWeir(stageConfig([engine.url], options)), engine }
}

/**
 * The shared service with the models of this configuration, which has to equal the other ones in all the rest. Each caller
 * has a workspace of its own: its key, its rate and its ledger are those of the workspace. Not for tests that run side by
 * side, because the model is the same for all.
 */
export async function sharedWeir(config: object): Promise<TestWeir> {
  started ??= startWeir(config, {}, { reloadsAtOnce: true })
  const weir = await started
  weir.writeConfig(config)
  // Forced, because the model may lose the unit that an earlier test priced.
  await made(weir.admin('POST', '/admin/v1/catalog/reload?force=true'))
  const workspace = `stage-${++stages}`
  const { id } = await made<{ id: string }>(weir.admin('POST', '/admin/v1/workspaces', { name: workspace }))
  const { key } = await made<{ key: string }>(weir.admin('POST', '/admin/v1/keys', { workspace }))
  return {
    ...weir,
    key,
    workspace,
    call: (path, init) => weir.call(path, { key, ...init }),
    chat: (body, init) => weir.chat(body, { key, ...init }),
    ledger: () => ledgerOf({ dataDir: weir.dataDir }, id),
  }
}

async function made<Body>(answer: Promise<Response>): Promise<Body> {
  const response = await answer
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as Body
}
