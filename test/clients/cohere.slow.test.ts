import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CohereRerank } from '@langchain/cohere'
import { CohereClient, CohereError, Cohere } from 'cohere-ai'
import * as cohere7 from 'cohere-ai-7'
import { recordingFetch, outcomes, pauseMs } from './attempts.ts'
import { endpoints, failOnce, holding, ownEndpoints, ranked, reasonOf, slugs, type Endpoints } from './endpoints.ts'
import { langChains, type LangChain } from './langchain-majors.ts'

/** The v1 client of each major, unchanged. It adds `v1/` to its paths itself, so its base address ends before that. */
const majors = [
  { client: 'cohere-ai', Client: CohereClient, CohereError, Cohere },
  {
    client: 'cohere-ai 7',
    Client: cohere7.CohereClient as unknown as typeof CohereClient,
    CohereError: cohere7.CohereError,
    Cohere: cohere7.Cohere,
  },
] as const

const scene = endpoints()
const question = { model: slugs.documents, query: ranked.query, documents: [...ranked.documents] }

type Settings = Partial<ConstructorParameters<typeof CohereClient>[0]>

function optionsFor({ weir }: Endpoints, settings: Settings = {}) {
  return { baseUrl: weir.base.replace(/\/v1$/, ''), token: weir.key, ...settings }
}

for (const { client, Client, CohereError, Cohere } of majors) {
  const clientOf = (scene: Endpoints, settings: Settings = {}): CohereClient => new Client(optionsFor(scene, settings))

  describe(`${client}: rerank`, () => {
    it('[E5] ranks documents, best first, with the billed units', async () => {
      const answer = await clientOf(scene).rerank(question)
      assert.deepEqual(
        answer.results.map(({ index, relevanceScore }) => ({ index, score: relevanceScore })),
        ranked.results,
      )
      assert.match(answer.id ?? '', /^rerank-/)
      assert.equal(answer.meta?.billedUnits?.searchUnits, 1)
      assert.equal(answer.meta?.apiVersion?.version, '1')
    })

    it('[E5] accepts documents as objects, respects topN and returns the documents', async () => {
      const documents = ranked.documents.map((text) => ({ text }))
      const { results } = await clientOf(scene).rerank({ ...question, documents, topN: 2, returnDocuments: true })
      assert.deepEqual(
        results.map(({ index, document }) => [index, document?.text]),
        [
          [1, ranked.documents[1]],
          [2, ranked.documents[2]],
        ],
      )
    })
  })

  describe(`${client}: errors`, () => {
    it('[K1][X1] have the right class, status and message', async () => {
      const wrongKey = await reasonOf(clientOf(scene, { token: 'weir-wrong' }).rerank(question))
      assert.ok(wrongKey instanceof Cohere.UnauthorizedError)
      const unknown = await reasonOf(clientOf(scene).rerank({ ...question, model: 'baai/none' }))
      assert.ok(unknown instanceof Cohere.NotFoundError)
      assert.match(unknown.message, /baai\/none/)
      const empty = await reasonOf(clientOf(scene).rerank({ ...question, documents: [] }))
      assert.ok(empty instanceof Cohere.BadRequestError)
      assert.match((empty.body as { message: string }).message, /documents/)
      const misplaced = await reasonOf(clientOf(scene).rerank({ ...question, model: slugs.passages }))
      assert.ok(misplaced instanceof CohereError)
      assert.equal(misplaced.statusCode, 400)
      assert.match(misplaced.message, /\/reranking/)
    })
  })

  describe(`${client}: abort`, () => {
    it('[E5] aborting before the answer frees the engine', { timeout: 20_000 }, async () => {
      scene.engine.script = holding()
      const controller = new AbortController()
      // The SDK does not clear its own timeout (300 s) on abort, and the process would wait for it.
      const options = { abortSignal: controller.signal, timeoutInSeconds: 2 }
      const attempt = reasonOf(clientOf(scene).rerank(question, options))
      await scene.engine.arrived(1)
      controller.abort()
      await attempt
      await scene.engine.left(1)
      assert.equal(scene.engine.calls.length, 1)
    })
  })
}

/** LangChain's reranker takes a ready client when the address is not Cohere's. It uses major 7 of that client. */
function compressorOf({ cohere }: LangChain, scene: Endpoints, model: string = slugs.documents): CohereRerank {
  const client = new cohere7.CohereClient(optionsFor(scene) as never)
  return new cohere.CohereRerank({ model, topN: 2, client })
}

for (const langChain of langChains) {
  describe(`CohereRerank${langChain.suffix}: rerank`, () => {
    it('[E5] keeps the best documents', async () => {
      const documents = ranked.documents.map((pageContent) => new langChain.documents.Document({ pageContent }))
      const kept = await compressorOf(langChain, scene).compressDocuments(documents, ranked.query)
      assert.deepEqual(
        kept.map(({ pageContent, metadata }) => [pageContent, metadata['relevanceScore']]),
        [
          [ranked.documents[1], 0.875],
          [ranked.documents[2], 0.5],
        ],
      )
    })

    it('[E5] ranks texts', async () => {
      const results = await compressorOf(langChain, scene).rerank([...ranked.documents], ranked.query, { topN: 3 })
      assert.deepEqual(
        results.map(({ index, relevanceScore }) => ({ index, score: relevanceScore })),
        ranked.results,
      )
    })
  })

  describe(`CohereRerank${langChain.suffix}: errors`, () => {
    it('[X1] carry the message of Weir', async () => {
      const compressor = compressorOf(langChain, scene, 'baai/none')
      await assert.rejects(compressor.rerank([...ranked.documents], ranked.query), {
        statusCode: 404,
        message: /baai\/none/,
      })
    })
  })
}

// The SDK's own first pause is 1 s, so one of 2 s shows that it respects Retry-After.
describe('all clients, concurrently', { concurrency: true }, () => {
  const calls: Record<string, (scene: Endpoints) => PromiseLike<unknown>> = {
    'cohere-ai 7: retries': (own) => new cohere7.CohereClient(optionsFor(own) as never).rerank(question),
    ...Object.fromEntries(
      langChains.map((langChain) => [
        `CohereRerank${langChain.suffix}: retries`,
        (own: Endpoints) => compressorOf(langChain, own).rerank([...ranked.documents], ranked.query),
      ]),
    ),
  }
  for (const [title, send] of Object.entries(calls)) {
    describe(title, () => {
      it('[X2] after one engine failure, retries when Retry-After says', async (t) => {
        const own = await ownEndpoints(t)
        failOnce(own, 500)
        await send(own)
        const [first, second] = own.engine.calls
        const pause = (second?.arrivedAt ?? 0) - (first?.arrivedAt ?? 0)
        assert.ok(pause >= 1990, `it paused ${pause} ms`)
      })
    })
  }

  describe('cohere-ai: retries', () => {
    it('[X2] after one engine failure, retries when Retry-After says', async (t) => {
      const own = await ownEndpoints(t)
      failOnce(own, 500)
      const { fetch, attempts } = recordingFetch()
      await new CohereClient(optionsFor(own, { fetch })).rerank(question)
      assert.deepEqual(outcomes(attempts), [
        [502, '2'],
        [200, null],
      ])
      assert.ok(pauseMs(attempts) >= 1990, `it paused ${pauseMs(attempts)} ms`)
    })
  })
})
