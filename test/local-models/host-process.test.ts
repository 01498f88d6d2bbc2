import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { hostProgram } from '../../src/local-models/installed.ts'
import { processesNaming } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'

describe('the host of models', () => {
  it('ends when the process of its supervisor is killed', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'weir-host-'))
    t.after(() => rm(directory, { recursive: true, force: true }))
    const program = join(directory, 'parent.ts')
    const supervisorUrl = new URL('../../src/local-models/supervisor.ts', import.meta.url).href
    const limits = { threads: 1, parallelRequests: 2, memoryBudgetBytes: 1e9 }
    const options = { hostProgram, socketDirectory: directory, modelsDirectory: directory, ...limits }
    await writeFile(
      program,
      `import { engineSupervisor } from '${supervisorUrl}'
      const supervisor = engineSupervisor({ ...${JSON.stringify(options)}, log: () => {} })
      process.send?.(await supervisor.socket('onnx'))`,
    )
    const parent = fork(program)
    const [path] = (await once(parent, 'message')) as [string]
    assert.equal(processesNaming(path).length, 1)
    parent.kill('SIGKILL')
    await eventually('the host is gone', () => processesNaming(path).length === 0)
  })
})
