import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

/** A copy of the gateway without packages/, as in the default image of the container. */
describe('a gateway without packages/local-models', () => {
  const root = join(import.meta.dirname, '../..')
  let folder = ''
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-gateway-'))
    for (const name of ['src', 'package.json']) cpSync(join(root, name), join(folder, name), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  })
  after(() => rmSync(folder, { recursive: true }))

  const weir = async (...args: string[]): Promise<{ readonly failed: boolean; readonly output: string }> =>
    new Promise((resolve) => {
      const program = [join(folder, 'src/main.ts'), ...args, '--json', '--data', join(folder, 'data')]
      execFile(process.execPath, program, { cwd: folder }, (error, stdout, stderr) =>
        resolve({ failed: error !== null, output: stdout + stderr }),
      )
    })

  it('has an empty default catalog', async () => {
    assert.deepEqual(await weir('models', 'list'), { failed: false, output: '{"object":"list","data":[]}\n' })
  })

  it('explains for a model with the embedded engine what to do', async () => {
    const config = join(folder, 'weir.yaml')
    const limits = '{ token_budget: 2048, max_concurrent_requests: 1, max_queue_depth: 4, max_wait_ms: 1000 }'
    writeFileSync(
      config,
      `models:
  - id: tinyllama/tinyllama-1.1b-chat
    name: TinyLlama
    categories: [llm]
    context_length: 2048
    max_completion_tokens: 512
    supported_parameters: [temperature]
    pricing: { input_per_million: "0.1", output_per_million: "0.1" }
    serverless: { engine: { kind: embedded }, limits: ${limits} }
`,
    )
    const expected =
      /the model "tinyllama\/tinyllama-1.1b-chat" cannot run here, because .* is without packages\/local-models; use the image built with --target embedded/
    for (const command of ['check', 'serve']) {
      const { failed, output } = await weir(command, '--config', config)
      assert.ok(failed, command)
      assert.match(output.replaceAll('\\"', '"'), expected)
    }
    const pulled = await weir('models', 'pull', 'tinyllama/tinyllama-1.1b-chat', '--config', config)
    assert.match(pulled.output, expected)
  })
})
