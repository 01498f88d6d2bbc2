import assert from 'node:assert/strict'
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { OpenAI } from 'openai'
import type { Service } from '../../src/compose.ts'
import { findModel } from '../../packages/local-models/manifest/manifest.ts'
import { outcomes, recordingFetch } from '../clients/attempts.ts'
import { refusalOf } from '../support/chat-stage.ts'
import { FETCHED_MODEL, PULLED_MODEL, startDefaultService, type DefaultService } from '../support/default-service.ts'
import { eventually } from '../support/waiting.ts'
import { OPERATOR_TOKEN } from '../support/weir.ts'

const MESSAGE = `${PULLED_MODEL} is not downloaded (5.0 GB). Download it on the server with: weir models pull ${PULLED_MODEL}`

const messages = [{ role: 'user' as const, content: 'Hi' }]

describe('a model of the default catalog', () => {
  let started: DefaultService
  let service: Service
  before(async () => {
    started = await startDefaultService()
    service = started.service
  })
  after(() => started.stop())

  const call = (path: string, body?: object): Promise<Response> =>
    fetch(`${service.url}/api/v1${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${service.firstKey}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const chat = (model: string): Promise<Response> => call('/chat/completions', { model, messages })
  const engineOf = async (lane: string) => {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` }
    const response = await fetch(`${service.adminUrl}/admin/v1/engines`, { headers })
    const { data } = (await response.json()) as { data: { lane: string; download: Record<string, unknown> | null }[] }
    return data.find((it) => it.lane === lane)?.download
  }
  const entryOf = async (id: string) => {
    const { data } = (await (await call('/models?scope=catalog')).json()) as { data: Record<string, unknown>[] }
    return data.find((it) => it['id'] === id)
  }

  it('[Q9] that is not downloaded returns its size and how to get it, and that waiting does not help', async () => {
    const response = await chat(PULLED_MODEL)
    assert.equal(response.headers.get('x-should-retry'), 'false')
    const { status, code, retryAfter, message } = await refusalOf(response)
    assert.deepEqual([status, code, retryAfter, message], [503, 'model_not_configured', '10', MESSAGE])
  })

  it('that is not downloaded shows the same in the list of models and in that of engines', async () => {
    const entry = await entryOf(PULLED_MODEL)
    assert.deepEqual(
      [entry?.['available'], entry?.['unavailable_reason'], entry?.['unavailable_message']],
      [false, 'not_downloaded', MESSAGE],
    )
    const download = await engineOf(PULLED_MODEL)
    assert.deepEqual(
      [download?.['state'], download?.['received_bytes'], download?.['message']],
      ['not_downloaded', 0, MESSAGE],
    )
    assert.equal(await engineOf('weir/starter-vision'), null)
  })

  it('that is being downloaded may be requested again', async () => {
    const response = await chat(FETCHED_MODEL)
    assert.equal(response.headers.get('x-should-retry'), null)
    const { status, code, retryAfter, message } = await refusalOf(response)
    assert.deepEqual([status, code, retryAfter], [503, 'model_not_configured', '10'])
    assert.match(message, /is being downloaded \(\d+ MB\)\. Try again when/)
    assert.equal((await entryOf(FETCHED_MODEL))?.['unavailable_reason'], 'downloading')
  })

  it('that another process downloads counts as being downloaded, until that process has written nothing for a minute', async () => {
    const model = findModel('qwen/qwen3-4b') ?? assert.fail('no such model')
    const part = join(started.folder, 'models', `${model.files[0]?.path}.0.part`)
    mkdirSync(dirname(part), { recursive: true })
    const reason = async () => (await entryOf(model.catalog.id))?.['unavailable_reason']
    assert.equal(await reason(), 'not_downloaded')
    writeFileSync(part, 'beginning')
    await eventually('the download is seen', async () => (await reason()) === 'downloading')
    assert.equal((await chat(model.catalog.id)).headers.get('x-should-retry'), null)
    const old = new Date(Date.now() - 61_000)
    utimesSync(part, old, old)
    await eventually('it is seen to be over', async () => (await reason()) === 'not_downloaded')
  })

  it('[X3] that is not downloaded is requested once by the SDKs', async () => {
    const apiKey = service.firstKey ?? ''
    const openai = recordingFetch()
    const openAi = new OpenAI({ baseURL: `${service.url}/api/v1`, apiKey, fetch: openai.fetch })
    await assert.rejects(openAi.chat.completions.create({ model: PULLED_MODEL, messages }), /is not downloaded/)
    assert.deepEqual(outcomes(openai.attempts), [[503, '10']])
    const anthropic = recordingFetch()
    const client = new Anthropic({ baseURL: `${service.url}/api`, apiKey, fetch: anthropic.fetch })
    const attempt = client.messages.create({ model: PULLED_MODEL, messages, max_tokens: 5 })
    await assert.rejects(Promise.resolve(attempt), /is not downloaded/)
    assert.deepEqual(outcomes(anthropic.attempts), [[503, '10']])
  })
})
