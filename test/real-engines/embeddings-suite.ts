import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { comparisonStage, type ComparisonStage } from './comparison.ts'
import type { EngineProcess } from './engine-process.ts'

/** A real server that makes embeddings. */
export interface EmbeddingsServer {
  readonly title: string
  readonly skip: string | false
  readonly kind: string
  readonly base: string
  readonly model: string
  /** Why Weir does not trust the server's count, if it does not. */
  readonly miscounts?: string
  start(): Promise<EngineProcess>
}

interface Embeddings {
  readonly data: { readonly index: number; readonly embedding: readonly number[] | string }[]
  readonly usage: { readonly prompt_tokens: number }
}

const texts = ['a weir holds water', 'paris', 'what is in france ?']

export function describeEmbeddings(server: EmbeddingsServer): void {
  describe(server.title, { skip: server.skip }, () => {
    let engine: EngineProcess
    let stage: ComparisonStage
    before(async () => {
      engine = await server.start()
      stage = await comparisonStage({ ...server, origin: engine.origin, categories: ['embedding'] })
    })
    after(async () => {
      await stage?.stop()
      await engine?.stop()
    })

    for (const input of ['a weir holds water', texts]) {
      it(`${typeof input === 'string' ? 'one text' : 'several texts'}, as numbers and as base64`, async () => {
        const direct = (await (await stage.direct('/embeddings', { input })).json()) as Embeddings
        for (const encoding_format of ['float', 'base64']) {
          const response = await stage.through('/embeddings', { input, encoding_format })
          const through = (await response.json()) as Embeddings
          assert.deepEqual(through.data.map(toVector).map(rounded), direct.data.map(toVector).map(rounded))
          const row = await stage.rowOf(response)
          assert.equal(row.inputTokens, through.usage.prompt_tokens)
          assert.equal(row.estimated, server.miscounts !== undefined)
          if (server.miscounts === undefined) assert.equal(row.inputTokens, direct.usage.prompt_tokens)
        }
      })
    }
  })
}

function toVector({ embedding }: Embeddings['data'][number]): readonly number[] {
  if (typeof embedding !== 'string') return embedding
  const bytes = Buffer.from(embedding, 'base64')
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4))
}

/** Numbers come with the precision of a float, or a little less. */
function rounded(vector: readonly number[]): readonly number[] {
  return vector.map((value) => Math.round(value * 1e5) / 1e5)
}
