import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Engine, EngineCall } from '../../src/engines/engine.ts'
import { hostProgram } from '../../src/local-models/installed.ts'
import { localModels } from '../../src/local-models/local-models.ts'
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

  it('ends before the models of its service count as closed', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'weir-host-'))
    t.after(() => rm(directory, { recursive: true, force: true }))
    const local = localModels({ directory, environment: process.env, log() {} })
    let path = ''
    const upstream = { run: () => ({ ended: Promise.resolve({ kind: 'ended' }) }) } as unknown as Engine
    const engine = local.engine(
      'sentence-transformers/all-minilm-l6-v2',
      (socketPath) => ((path = socketPath), upstream),
    )
    assert.deepEqual(await engine.run({} as EngineCall).ended, { kind: 'ended' })
    assert.equal(processesNaming(path).length, 1)
    await local.close()
    assert.equal(processesNaming(path).length, 0)
  })
})
