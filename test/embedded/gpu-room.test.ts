import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { InsufficientMemoryError } from 'node-llama-cpp'
import { inGpuRoom, type GpuShare } from '../../src/embedded/host/llama/gpu-room.ts'

describe('the room on a GPU', () => {
  const fitContext = { contextSize: 16_384, embeddingContext: false }

  /** What was asked for, when the first attempt fails so. */
  async function load(failure?: Error): Promise<{ shares: GpuShare[]; told: number }> {
    const shares: GpuShare[] = []
    let told = 0
    const attempt = async (share: GpuShare) => {
      if (shares.push(share) === 1 && failure) throw failure
    }
    await inGpuRoom(fitContext, attempt, () => told++)
    return { shares, told }
  }

  it('is shared between the layers and the context', async () => {
    assert.deepEqual(await load(), { shares: [{ fitContext }], told: 0 })
  })

  it('is done without when others have it', async () => {
    const failure = new InsufficientMemoryError('the context is too large for the available VRAM')
    assert.deepEqual(await load(failure), { shares: [{ fitContext }, 0], told: 1 })
  })

  it('is not to blame for a broken file', async () => {
    await assert.rejects(load(new Error('not a GGUF file')), /not a GGUF/)
  })
})
