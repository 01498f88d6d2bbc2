import type { SampleBody } from '../../src/server/docs/code-samples.ts'
import type { Model } from './api.ts'

/** A first request to a model, for its page and for the playground. */
export function firstRequest({ id, endpoints }: Pick<Model, 'id' | 'endpoints'>): { path: string; body: SampleBody } {
  const path = endpoints[0] ?? '/chat/completions'
  const json = (value: object): { path: string; body: SampleBody } => ({
    path,
    body: { kind: 'json', value: { model: id, ...value } },
  })
  switch (path) {
    case '/embeddings':
      return json({ input: ['A weir raises the water level.', 'A lock lifts boats.'] })
    case '/rerank':
      return json({ query: 'What is a weir?', documents: ['A low dam across a river.', 'A kind of bread.'] })
    case '/reranking':
      return json({
        query: { text: 'What is a weir?' },
        passages: [{ text: 'A low dam across a river.' }, { text: 'A kind of bread.' }],
      })
    case '/images/generations':
      return json({ prompt: 'A red apple on a table' })
    case '/audio/transcriptions':
      return { path, body: { kind: 'form', file: ['file', 'speech.wav'], fields: [['model', id]] } }
    default:
      return json({ messages: [{ role: 'user', content: 'Name the capital of France.' }], max_tokens: 100 })
  }
}
