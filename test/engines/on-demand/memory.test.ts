import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { EngineRun } from '../../../src/catalog/model.ts'
import { memoryFigures, takesTooMuch } from '../../../src/engines/on-demand/memory-figures.ts'
import { gpuMemory, memoryOf } from '../../../src/engines/on-demand/memory-use.ts'
import { engineRun } from '../../support/engine-run.ts'
import { eventually } from '../../support/waiting.ts'

const MEBIBYTE = 2 ** 20

describe('what an engine takes of its device', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-memory-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const run = (changes: Partial<EngineRun>): EngineRun =>
    engineRun({ device: { name: 'gpu0', bytes: 1000 }, ...changes })

  it('is all of it until it is measured, then the most that was measured, also after a restart', () => {
    const path = join(folder, 'memory.json')
    const figures = memoryFigures(path)
    const it = run({})
    assert.deepEqual(figures.of('a', it), { bytes: 1000, source: 'unmeasured', measuredBytes: undefined })
    assert.deepEqual(
      [figures.add('a', it, 300), figures.add('a', it, 200), figures.add('a', it, 300)],
      [true, false, false],
    )
    for (const known of [figures, memoryFigures(path)]) {
      assert.deepEqual(known.of('a', it), { bytes: 300, source: 'measured', measuredBytes: 300 })
      assert.equal(known.of('b', it)?.source, 'unmeasured', 'another lane')
    }
  })

  it('is measured anew for another command or environment', () => {
    const figures = memoryFigures(join(folder, 'memory.json'))
    figures.add('a', run({}), 300)
    assert.equal(figures.of('a', run({ port: 8102 }))?.source, 'measured')
    for (const changed of [{ command: ['serve', '--context', '8192'] }, { env: { A: '1' } }]) {
      assert.equal(figures.of('a', run(changed))?.source, 'unmeasured')
    }
  })

  it('is what the catalog says if it has a figure, which is too small if clearly more is measured', () => {
    const figures = memoryFigures(join(folder, 'memory.json'))
    const it = run({ bytes: 500 })
    figures.add('a', it, 550)
    assert.deepEqual(figures.of('a', it), { bytes: 500, source: 'configured', measuredBytes: 550 })
    assert.equal(takesTooMuch(figures.of('a', it)!), false)
    figures.add('a', it, 551)
    assert.equal(takesTooMuch(figures.of('a', it)!), true)
  })

  it('is never more than the device, so that it can start alone', () => {
    const figures = memoryFigures(join(folder, 'memory.json'))
    figures.add('a', run({}), 2000)
    const figure = figures.of('a', run({}))!
    assert.deepEqual(figure, { bytes: 1000, source: 'measured', measuredBytes: 2000 })
    assert.equal(takesTooMuch(figure), true)
  })

  it('is nothing without a device', () => {
    const figures = memoryFigures(join(folder, 'memory.json'))
    assert.equal(figures.of('a', run({ device: undefined })), undefined)
  })
})

describe('the memory of the processes of an engine', () => {
  const pids = new Set([445, 446])
  const isVisible = (pid: number): boolean => pid < 1000

  it('on GPUs is the sum of what nvidia-smi lists for them', () => {
    assert.equal(gpuMemory('445, 2566\n446, 10\n445, 4\n17, 900\n', pids, isVisible), 2580 * MEBIBYTE)
  })

  it('is not on a GPU if nvidia-smi lists only other processes', () => {
    assert.equal(gpuMemory('', pids, isVisible), 'none')
    assert.equal(gpuMemory('17, 900\n', pids, isVisible), 'none')
  })

  it('is unknown if nvidia-smi names processes that are not visible here, or no amount', () => {
    assert.equal(gpuMemory('70445, 2566\n', pids, isVisible), undefined)
    assert.equal(gpuMemory('445, [N/A]\n', pids, isVisible), undefined)
    assert.equal(gpuMemory('445, 2566\n446, [N/A]\n', pids, isVisible), undefined)
  })

  it('is the most that they had resident, without the leader of their group', async () => {
    const grown = `const held = Buffer.alloc(150 * ${MEBIBYTE}, 1); console.log(held.length); setInterval(() => {}, 1000)`
    const script = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(grown)}], { stdio: 'inherit' })`
    const leader = spawn(process.execPath, ['-e', `Buffer.alloc(400 * ${MEBIBYTE}, 1); ${script}`], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      await once(leader.stdout, 'data')
      const bytes = (await memoryOf(leader.pid!)) ?? assert.fail('not measured')
      assert.ok(bytes > 150 * MEBIBYTE && bytes < 350 * MEBIBYTE, `${bytes / MEBIBYTE} MiB`)
    } finally {
      process.kill(-leader.pid!, 'SIGKILL')
    }
    await eventually('nothing is left to measure', async () => (await memoryOf(leader.pid!)) === undefined)
  })
})
