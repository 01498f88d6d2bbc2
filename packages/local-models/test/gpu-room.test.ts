import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { InsufficientMemoryError } from 'node-llama-cpp'
import { inGpuRoom, type GpuShare } from '../host/llama/gpu-room.ts'

describe('the room on a GPU', () => {
  const fitContext = { contextSize: 16_384, embeddingContext: false }

  /** Which shares are tried if the first attempt fails like this, and how often the GPU is reported full. */
  async function load(failure?: Error): Promise<{ shares: GpuShare[]; reported: number }> {
    const shares: GpuShare[] = []
    let reported = 0
    const attempt = async (share: GpuShare) => {
      if (shares.push(share) === 1 && failure) throw failure
    }
    await inGpuRoom(fitContext, attempt, () => reported++)
    return { shares, reported }
  }

  it('is shared between the layers and the context', async () => {
    assert.deepEqual(await load(), { shares: [{ fitContext }], reported: 0 })
  })

  it('is not used when other programs have filled it', async () => {
    const failure = new InsufficientMemoryError('the context is too large for the available VRAM')
    assert.deepEqual(await load(failure), { shares: [{ fitContext }, 0], reported: 1 })
  })

  it('is not blamed for a broken file', async () => {
    await assert.rejects(load(new Error('not a GGUF file')), /not a GGUF/)
  })
})
