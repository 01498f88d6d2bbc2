import { readFileSync } from 'node:fs'
import { finding } from './figures.ts'
import { modelFiles } from '../src/local-models/files/model-files.ts'
import { findModel } from '../packages/local-models/manifest/manifest.ts'
import { defaultCatalog } from '../src/local-models/default-catalog.ts'
import { chatTasks, speechTasks, type ChatTask, type SpeechTask } from './model-tasks.ts'
import { startWeir } from './weir-process.ts'
import { missingWords, wordErrorRate } from './word-errors.ts'

/** How well the small models answer, on a fixed set, through the service at temperature 0. */
const chatModels = ['qwen2.5-coder', 'qwen2.5-coder-1.5b', 'smollm2', 'tinyllama']
const speechModels = ['whisper-tiny', 'whisper-base', 'whisper-small', 'moonshine-tiny']
const modelsDirectory = process.env['WEIR_MODEL_CACHE'] ?? 'data/models'
const isVerbose = process.argv.includes('--verbose')

const files = modelFiles(modelsDirectory, { environment: process.env })
for (const slug of [...chatModels, ...speechModels]) await files.pull(slug)
const weir = await startWeir(JSON.parse(defaultCatalog(modelsDirectory)) as object, { modelsDirectory })

async function ask(path: string, body: string | FormData): Promise<string> {
  const type: Record<string, string> = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
  const response = await fetch(`${weir.origin}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${weir.key}`, ...type },
    body,
  })
  return response.text()
}

interface ChatAnswer {
  readonly choices: readonly [{ readonly message: { readonly content: string } }]
  readonly usage: { readonly completion_tokens: number }
}

async function answer(model: string, { question }: ChatTask): Promise<{ text: string; tokens: number }> {
  const body = { model, messages: [{ role: 'user', content: question }], temperature: 0, max_tokens: 100 }
  const { choices, usage } = JSON.parse(await ask('/chat/completions', JSON.stringify(body))) as ChatAnswer
  return { text: choices[0].message.content, tokens: usage.completion_tokens }
}

async function measureChat(model: string): Promise<object> {
  const wrong: string[] = []
  let tokens = 0
  // The first answer loads the model.
  await answer(model, chatTasks[0] as ChatTask)
  const started = performance.now()
  for (const task of chatTasks) {
    const { text, tokens: count } = await answer(model, task)
    tokens += count
    if (!task.right(text)) wrong.push(task.about)
    if (isVerbose) console.log(`${model} | ${task.question}\n    ${text.replaceAll('\n', '\n    ')}`)
  }
  const perSecond = (1000 * tokens) / (performance.now() - started)
  finding(`${model}.right`, `${chatTasks.length - wrong.length} of ${chatTasks.length}`)
  finding(`${model}.wrong`, wrong.join(', '))
  return {
    model: findModel(model)?.catalog.id,
    right: `${chatTasks.length - wrong.length} of ${chatTasks.length}`,
    'tokens/s': perSecond.toFixed(0),
    wrong: wrong.join(', '),
  }
}

async function transcribe(model: string, { clip, task, language }: SpeechTask): Promise<string> {
  const form = new FormData()
  const path = new URL(`../test/models/clips/${clip}`, import.meta.url)
  form.append('file', new Blob([readFileSync(path)]), clip)
  form.append('model', model)
  form.append('response_format', 'text')
  if (task === 'transcriptions') form.append('language', language)
  return ask(`/audio/${task}`, form)
}

async function measureSpeech(model: string): Promise<object> {
  const rates: Record<string, string> = {}
  for (const task of speechTasks) {
    const text = await transcribe(model, task)
    const name = `${task.clip.replace(/\..*$/, '')}${task.task === 'translations' ? ' to English' : ''}`
    const wrong = task.task === 'translations' ? missingWords(task.words, text) : wordErrorRate(task.words, text)
    rates[name] = text.includes('"error"') ? '-' : `${Math.round(100 * wrong)} %`
    finding(`${model}.${name}`, rates[name])
    if (isVerbose) console.log(`${model} | ${name}\n    ${text.trim()}`)
  }
  return { model: findModel(model)?.catalog.id, ...rates }
}

const chat: object[] = []
for (const model of chatModels) chat.push(await measureChat(model))
const speech: object[] = []
for (const model of speechModels) speech.push(await measureSpeech(model))
await weir.stop()
console.log(`Chat, ${chatTasks.length} short tasks:`)
console.table(chat)
console.log('Speech, words wrong or missing:')
console.table(speech)
