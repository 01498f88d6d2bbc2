import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatTasks } from '../../bench/model-tasks.ts'
import { startService } from './service.ts'

/** Of the catalog without a configuration: the banner, the console and the README name it. */
const REQUIRED = 17
const AT_ONCE = 2

describe('the chat model that is named first', { timeout: 600_000 }, () => {
  it('answers at least 17 of 20 plain questions, and calls tools by itself', async (context) => {
    const model = 'qwen/qwen2.5-coder-0.5b-instruct'
    const service = await startService(model)
    context.after(() => service.close())
    const { json: listed } = await service.get('/models?scope=catalog')
    const chat = listed.data.find((it: { model_categories: string[] }) => it.model_categories.includes('llm'))
    assert.equal(chat.id, model)

    const waiting = [...chatTasks]
    const wrong: string[] = []
    const ask = async (): Promise<void> => {
      for (let task = waiting.shift(); task; task = waiting.shift()) {
        const messages = [{ role: 'user', content: task.question }]
        const { status, json, text } = await service.post('/chat/completions', { model, messages, max_tokens: 100 })
        assert.equal(status, 200, text)
        const answer = json.choices[0].message.content as string
        if (!task.right(answer)) wrong.push(`${task.question} -> ${answer}`)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, ask))
    context.diagnostic(`${chatTasks.length - wrong.length} of ${chatTasks.length}`)
    assert.equal(chatTasks.length, 20)
    assert.ok(chatTasks.length - wrong.length >= REQUIRED, wrong.join('\n'))

    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    const tools = [
      { type: 'function', function: { name: 'get_weather', description: 'Get the weather of a city', parameters } },
    ]
    for (const city of ['Paris', 'Berlin']) {
      const messages = [{ role: 'user', content: `What is the weather in ${city}?` }]
      const { json } = await service.post('/chat/completions', { model, messages, tools, max_tokens: 60 })
      const [choice] = json.choices
      assert.equal(choice.finish_reason, 'tool_calls', JSON.stringify(choice))
      assert.equal(choice.message.tool_calls[0].function.name, 'get_weather')
      assert.deepEqual(JSON.parse(choice.message.tool_calls[0].function.arguments), { city })
    }
  })
})
