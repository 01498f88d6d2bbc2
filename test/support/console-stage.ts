import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core'
import { openBrowser, openPage } from './browser.ts'
import { scriptedEngine, type ScriptedEngine } from './scripted-engine.ts'
import { speechEngine, type SpeechEngine } from './speech-engine.ts'
import { modelEntry, startWeir, type TestWeir } from './weir.ts'

/** The service with a model of every category, and a browser in front of its console. */
export interface ConsoleStage {
  readonly weir: TestWeir
  readonly engine: ScriptedEngine
  readonly browser: Browser
  /** A browser of its own, signed in with the key of the first workspace unless told otherwise. */
  visitor(options?: { readonly isSignedIn?: boolean } & Screen): Promise<Visitor>
  /** A browser of its own, signed in to the operator's console. */
  operator(options?: Screen): Promise<Visitor>
  stop(): Promise<void>
}

interface Screen {
  readonly phone?: boolean
  readonly dark?: boolean
}

export interface Visitor {
  readonly context: BrowserContext
  readonly page: Awaited<ReturnType<typeof openPage>>
  go(path: string): Promise<void>
}

export async function consoleStage(
  config: { readonly models?: readonly object[] } & Record<string, unknown> = {},
): Promise<ConsoleStage> {
  // A part that does not start ends those before it: left open, they would keep the test file from ending.
  await using starting = new AsyncDisposableStack()
  const engine = starting.adopt(await scriptedEngine(), (it) => it.close())
  const speech = starting.adopt(await speechEngine(), (it) => it.close())
  const service = startWeir({
    rate_limit: { requests_per_minute: 100_000, unauthenticated_per_minute: 10_000 },
    ...config,
    models: [...everyCategory(engine, speech), ...(config.models ?? [])],
  })
  const weir = starting.adopt(await service, (it) => it.stop())
  const browser = starting.adopt(await openBrowser(), (it) => it.close())
  const started = starting.move()

  return {
    weir,
    engine,
    browser,
    async visitor({ isSignedIn = true, ...screen } = {}) {
      const permissions = ['clipboard-read', 'clipboard-write', 'microphone']
      const context = await browser.newContext({ ...screenOf(screen), permissions })
      const page = await openPage(context)
      const go = async (path: string): Promise<void> => {
        await page.goto(`${weir.service.url}/console${path}`)
        await page.locator('h1').first().waitFor()
      }
      if (isSignedIn) await signIn(context, weir.service.url, { key: weir.key })
      return { context, page, go }
    },
    async operator(screen = {}) {
      const context = await browser.newContext(screenOf(screen))
      const page = await openPage(context)
      const go = async (path: string): Promise<void> => {
        await page.goto(`${weir.adminUrl}/console${path}`)
        await page.locator('h1').first().waitFor()
      }
      await signIn(context, weir.adminUrl, { token: weir.operatorToken })
      return { context, page, go }
    },
    stop: () => started.disposeAsync(),
  }
}

function screenOf({ phone = false, dark = false }: Screen): BrowserContextOptions {
  return {
    viewport: phone ? { width: 390, height: 844 } : { width: 1280, height: 860 },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
  }
}

async function signIn(context: BrowserContext, url: string, data: object): Promise<void> {
  const response = await context.request.post(`${url}/console/api/session`, {
    data,
    headers: { 'x-weir-console': '1' },
  })
  if (!response.ok()) throw new Error(await response.text())
}

function everyCategory(engine: ScriptedEngine, speech: SpeechEngine): readonly object[] {
  const { url } = engine
  const limits = { token_budget: 100_000, max_concurrent_requests: 8, max_queue_depth: 16, max_wait_ms: 60_000 }
  const serverless = { engine: { kind: 'openai', urls: [url], model: 'engine-name' }, limits }
  return [
    modelEntry([url], {
      name: 'Test 8B',
      description: 'A small model that answers whatever the test wants.',
      serverless,
    }),
    modelEntry([url], {
      id: 'meta/vision',
      aliases: [],
      name: 'Vision 3B',
      categories: ['llm', 'vision'],
      serverless,
    }),
    modelEntry([url], {
      id: 'baai/embed',
      aliases: [],
      name: 'Embed Small',
      categories: ['embedding'],
      supported_parameters: ['dimensions'],
      pricing: { input_per_million: '0.02' },
      serverless,
    }),
    modelEntry([url], {
      id: 'baai/rerank',
      aliases: [],
      name: 'Rerank Base',
      categories: ['reranker'],
      rerank_schema: 'documents',
      supported_parameters: [],
      pricing: { input_per_million: '0.05' },
      serverless,
    }),
    modelEntry([url], {
      id: 'nvidia/passages',
      aliases: [],
      name: 'Passages',
      categories: ['reranker'],
      rerank_schema: 'passages',
      supported_parameters: [],
      pricing: { input_per_million: '0.05' },
      serverless: { ...serverless, engine: { ...serverless.engine, kind: 'nim' } },
    }),
    modelEntry([url], {
      id: 'art/images',
      aliases: [],
      name: 'Picture Maker',
      categories: ['image'],
      supported_parameters: ['seed', 'n', 'size'],
      pricing: { per_image: '0.04', image_prices: [{ size: '512x512', per_image: '0.01' }] },
      serverless,
    }),
    modelEntry([url], {
      id: 'openai/whisper',
      aliases: [],
      name: 'Whisper Tiny',
      categories: ['audio'],
      supported_parameters: ['language', 'prompt', 'temperature', 'response_format'],
      pricing: { per_audio_minute: '0.006' },
      serverless: { ...serverless, engine: { ...serverless.engine, urls: [speech.url] } },
    }),
    modelEntry([], {
      id: 'acme/a-model-with-a-very-long-name-that-goes-on-and-on-until-it-does-not-fit-anywhere',
      aliases: [],
      name: 'A model with a very long name that does not fit on one line of a card',
      serverless: {},
    }),
  ]
}
