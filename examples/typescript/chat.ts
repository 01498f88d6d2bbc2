// One question, one answer. npm install openai, then: node chat.ts (Node 22.18 or later runs TypeScript as it is)
import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: `${process.env['WEIR_URL'] ?? 'http://127.0.0.1:8080'}/api/v1`,
  apiKey: process.env['WEIR_API_KEY'],
  // The SDK retries a call that got 429 or 503 after the pause in Retry-After. It retries twice by default.
  maxRetries: 5,
})

const { data: completion, response } = await client.chat.completions
  .create({
    model: process.env['WEIR_CHAT_MODEL'] ?? 'qwen/qwen2.5-coder-0.5b-instruct',
    messages: [{ role: 'user', content: 'What is the capital of Australia?' }],
    max_tokens: 100,
  })
  .withResponse()

console.log(completion.choices[0]?.message.content)
console.log(`${completion.usage?.total_tokens} tokens, ${response.headers.get('x-queue-wait-ms')} ms in the queue`)
