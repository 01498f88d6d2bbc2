// How alike two texts are. npm install openai, then: node embeddings.ts
import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: `${process.env['WEIR_URL'] ?? 'http://127.0.0.1:8080'}/api/v1`,
  apiKey: process.env['WEIR_API_KEY'],
})

const { data } = await client.embeddings.create({
  model: process.env['WEIR_EMBEDDING_MODEL'] ?? 'sentence-transformers/all-minilm-l6-v2',
  input: ['A weir is a low dam across a river.', 'A barrier that raises the water level of a stream.'],
})

const [one = [], other = []] = data.map(({ embedding }) => embedding)
const product = (left: readonly number[], right: readonly number[]): number =>
  left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0)
const similarity = product(one, other) / Math.sqrt(product(one, one) * product(other, other))

console.log(`${one.length} dimensions, similarity ${similarity.toFixed(3)}`)
