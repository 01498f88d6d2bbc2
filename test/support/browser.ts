import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'

/** Debian's chromium. scripts/test.mjs installs it. */
const CHROMIUM = '/usr/bin/chromium'

export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
    ],
  })
}

/** A page that fails the test when its script fails, or when it breaks its own content security policy. */
export async function openPage(context: BrowserContext): Promise<Page & { readonly problems: string[] }> {
  const page = await context.newPage()
  // Slow machines are given time; a wrong page fails all the same.
  page.setDefaultTimeout(60_000)
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error' && /Content Security Policy|Uncaught/.test(message.text()))
      problems.push(message.text())
  })
  return Object.assign(page, { problems })
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
  }[]
}

/** Fails on whatever axe finds serious: the page would be hard to use without a mouse or without seeing it. */
export async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axe)
  const { violations } = await page.evaluate<AxeResult>('axe.run({ resultTypes: ["violations"] })')
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  assert.deepEqual(
    serious.map(({ id, nodes }) => `${id}: ${nodes.map((it) => `${it.html} ${it.failureSummary}`).join(' | ')}`),
    [],
    page.url(),
  )
}

/** Fails if the page or a table is wider than the screen, or an action in a table is not in sight. */
export async function assertFits(page: Page): Promise<void> {
  const tooWide = await page.evaluate<string[]>(`(() => {
    const inSight = (it) => {
      const { left, right } = it.getBoundingClientRect()
      const around = it.closest('.table-wrap').getBoundingClientRect()
      return left >= around.left - 1 && right <= Math.min(around.right, innerWidth) + 1
    }
    const actions = [...document.querySelectorAll('.table-wrap :is(button, select, input, .button)')]
    const tables = [...document.querySelectorAll('.table-wrap')]
    return [
      ...(document.body.scrollWidth > innerWidth ? ['the page'] : []),
      ...actions.filter((it) => !inSight(it)).map((it) => it.ariaLabel ?? it.textContent),
      ...tables.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.ariaLabel),
    ]
  })()`)
  assert.deepEqual(tooWide, [], page.url())
}
