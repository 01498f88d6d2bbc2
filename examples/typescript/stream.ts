// An answer token by token. npm install openai, then: node stream.ts
import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: `${process.env['WEIR_URL'] ?? 'http://127.0.0.1:8080'}/api/v1`,
  apiKey: process.env['WEIR_API_KEY'],
})

const stream = await client.chat.completions.create({
  model: process.env['WEIR_CHAT_MODEL'] ?? 'qwen/qwen2.5-coder-0.5b-instruct',
  messages: [{ role: 'user', content: 'What is the capital of Australia?' }],
  max_tokens: 100,
  stream: true,
  stream_options: { include_usage: true },
})

// If the engine breaks off, the loop throws: a stream that ends quietly is complete.
for await (const { choices, usage } of stream) {
  process.stdout.write(choices[0]?.delta.content ?? '')
  if (usage) process.stdout.write(`\n${usage.total_tokens} tokens\n`)
}
