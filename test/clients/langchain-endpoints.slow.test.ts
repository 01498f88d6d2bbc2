import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { png } from '../support/image-samples.ts'
import { all, endpoints, slugs, vectorOf, type Endpoints } from './endpoints.ts'
import { langChains } from './langchain-majors.ts'

/** The other classes of each major that work with an OpenAI-compatible API. */
const scene = endpoints()

function at({ weir }: Endpoints) {
  return { apiKey: weir.key, configuration: { baseURL: weir.base } }
}

for (const {
  suffix,
  openai: { DallEAPIWrapper, OpenAI, OpenAIEmbeddings },
} of langChains) {
  describe(`langchain${suffix}: completions`, () => {
    it('[E3] return whole and streamed answers', async () => {
      const llm = new OpenAI({ ...at(scene), model: slugs.chat, maxTokens: 3 })
      assert.equal(await llm.invoke('A weir lets'), ' a river through')
      assert.deepEqual((await all(await llm.stream('A weir lets'))).filter(Boolean), [' a', ' river', ' through'])
    })
  })

  describe(`langchain${suffix}: embeddings`, () => {
    for (const encodingFormat of [undefined, 'float'] as const) {
      it(`[E4] are returned for a query and for documents, in order (${encodingFormat ?? 'default format'})`, async () => {
        const format = encodingFormat ? { encodingFormat } : {}
        const embeddings = new OpenAIEmbeddings({ ...at(scene), model: slugs.embedding, ...format })
        assert.deepEqual([...(await embeddings.embedQuery('one'))], vectorOf(0))
        const vectors = await embeddings.embedDocuments(['one', 'two'])
        assert.deepEqual(
          vectors.map((vector) => [...vector]),
          [vectorOf(0), vectorOf(1)],
        )
      })
    }
  })

  describe(`langchain${suffix}: images`, () => {
    const wrapper = (dallEResponseFormat: 'url' | 'b64_json') =>
      new DallEAPIWrapper({
        apiKey: scene.weir.key,
        baseUrl: scene.weir.base,
        model: slugs.images,
        dallEResponseFormat,
      })

    it('[E7] are returned as b64_json and as links', async () => {
      assert.equal(await wrapper('b64_json').invoke('A weir at dawn'), png().toString('base64'))
      const opened = await fetch((await wrapper('url').invoke('A weir at dawn')) as string)
      assert.deepEqual(Buffer.from(await opened.arrayBuffer()), png())
    })
  })
}
