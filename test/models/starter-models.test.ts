import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import sharp from 'sharp'
import { startService, type ModelService } from './service.ts'

const boxDirectory = join(import.meta.dirname, '../../packages/local-models/models')

interface VisionFixture {
  image: string
  question: string
  answer: string
}

const fixtures = JSON.parse(readFileSync(join(boxDirectory, 'starter-vision/fixtures.json'), 'utf8')) as VisionFixture[]

describe('the models shipped with Weir', () => {
  let service: ModelService
  before(async () => {
    service = await startService()
  })
  after(() => service.close())

  const question = (text: string, image: Buffer) => ({
    model: 'weir/starter-vision',
    temperature: 0,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${image.toString('base64')}` } },
        ],
      },
    ],
  })
  const draw = async (prompt: string, seed: number, more: object = {}) => {
    const answer = await service.post('/images/generations', { model: 'weir/starter-image', prompt, seed, ...more })
    assert.equal(answer.status, 200, answer.text)
    return answer.json.data.map((item: { b64_json: string }) => Buffer.from(item.b64_json, 'base64')) as Buffer[]
  }

  it('are listed', async () => {
    const { json } = await service.get('/models')
    const ids = new Set(json.data.map((model: { id: string }) => model.id))
    assert.ok(ids.has('weir/starter-image') && ids.has('weir/starter-vision'))
  })

  it('vision gives the recorded answer to every fixture', async () => {
    for (const { image, question: text, answer } of fixtures) {
      const picture = readFileSync(join(boxDirectory, 'starter-vision', image))
      const { json } = await service.post('/chat/completions', question(text, picture))
      assert.equal(json.choices[0].message.content, answer, `${image}: ${text}`)
      assert.equal(json.choices[0].finish_reason, 'stop')
      assert.ok(json.usage.completion_tokens > 0 && json.usage.prompt_tokens > 256)
    }
  })

  it('vision streams its answer with usage', async () => {
    const picture = readFileSync(join(boxDirectory, 'starter-vision/fixture_pair_0.png'))
    const options = { stream_options: { include_usage: true } }
    const chunks = await Array.fromAsync(
      service.stream('/chat/completions', { ...question('what emoji is this?', picture), ...options }),
    )
    assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' })
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
    assert.equal(text, 'lungs and a green heart')
    assert.equal(chunks.at(-2).choices[0].finish_reason, 'stop')
    assert.deepEqual(chunks.at(-1).choices, [])
    assert.ok(chunks.at(-1).usage.completion_tokens > 0)
  })

  it('vision obeys stop and max_tokens', async () => {
    const picture = readFileSync(join(boxDirectory, 'starter-vision/fixture_pair_0.png'))
    const base = question('what emoji is this?', picture)
    const stopped = await service.post('/chat/completions', { ...base, stop: ' and' })
    assert.equal(stopped.json.choices[0].message.content, 'lungs')
    const short = await service.post('/chat/completions', { ...base, max_tokens: 2 })
    assert.equal(short.json.choices[0].finish_reason, 'length')
    assert.equal(short.json.usage.completion_tokens, 2)
  })

  it('vision explains what it needs', async () => {
    const bare = await service.post('/chat/completions', {
      model: 'weir/starter-vision',
      messages: [{ role: 'user', content: 'hello' }],
    })
    assert.equal(bare.status, 400)
    assert.match(bare.json.error.message, /needs an image/)
    const picture = readFileSync(join(boxDirectory, 'starter-vision/fixture_pair_0.png'))
    const torn = await service.post('/chat/completions', question('what is this?', picture.subarray(0, 200)))
    assert.equal(torn.status, 400)
    assert.match(torn.json.error.message, /could not be decoded/)
  })

  it('images repeat with their seed, differ with another, and have the requested size', async () => {
    const digest = (image: Buffer) => createHash('sha256').update(image).digest('hex')
    const [first, second] = await draw('a red apple', 42, { n: 2, steps: 4 })
    const [again] = await draw('a red apple', 42, { steps: 4 })
    assert.ok(first && second && again)
    assert.equal(digest(again), digest(first))
    assert.notEqual(digest(second), digest(first))
    const [wide] = await draw('a red apple', 42, { steps: 1, size: '320x192' })
    const { width, height, format } = await sharp(wide).metadata()
    assert.deepEqual({ width, height, format }, { width: 320, height: 192, format: 'png' })
  })

  it('images match the reference picture', async () => {
    const pixels = (image: Buffer) => sharp(image).removeAlpha().raw().toBuffer()
    const [image] = await draw('a red apple', 42)
    assert.ok(image)
    const [drawn, expected] = await Promise.all([
      pixels(image),
      pixels(readFileSync(join(boxDirectory, 'starter-image/fixture_red_apple_seed42.png'))),
    ])
    const difference =
      drawn.reduce((sum, value, index) => sum + Math.abs(value - (expected[index] ?? 0)), 0) / drawn.length
    assert.ok(difference < 3, `mean difference ${difference}`)
  })

  it('the vision model recognises what the image model draws', async () => {
    const concepts = ['rocket', 'pizza', 'snowflake', 'goose', 'clamp', 'sunflower']
    let named = 0
    for (const [index, concept] of concepts.entries()) {
      const [image] = await draw(`a ${concept}`, 100 + index)
      const { json } = await service.post('/chat/completions', question('what is this?', image ?? Buffer.alloc(0)))
      if (json.choices[0].message.content.includes(concept)) named++
    }
    // By chance, each would be named about once in three thousand.
    assert.ok(named >= 4, `${named} of ${concepts.length} named`)
  })
})
