import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { AgentHome, AgentName, SeenRequest } from './agent-process.ts'

/** Longer texts are an agent's own prompts. What matters here is the shape of its requests. */
const LONGEST_TEXT = 160

/**
 * Writes the requests of a session to test/fixtures/agents, for test/conformance/agents.test.ts, if WEIR_KEEP_REQUESTS is set.
 * Long texts are shortened, and what differs from run to run is replaced.
 */
export function keepRequests(name: AgentName, seen: readonly SeenRequest[], { home, work }: AgentHome): void {
  if (!process.env['WEIR_KEEP_REQUESTS']) return
  const folder = new URL('../fixtures/agents/', import.meta.url)
  mkdirSync(folder, { recursive: true })
  const plain = (text: string): string =>
    text
      .replaceAll(work, '/project')
      .replaceAll(home, '/home')
      .replaceAll(tmpdir(), '/tmp')
      .replaceAll(
        /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g,
        '00000000-0000-4000-8000-000000000000',
      )
      .replaceAll(/[0-9a-f]{64}/g, '0'.repeat(64))
  const short = (_: string, value: unknown): unknown => {
    if (typeof value !== 'string') return value
    const text = plain(value)
    return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)} …` : text
  }
  const requests = seen.map(({ path, headers, body }) => ({
    path,
    headers: Object.fromEntries(
      Object.entries(headers).flatMap(([field, value]) =>
        /^(accept|content-type|user-agent|anthropic-.*)$/.test(field) ? [[field, plain(String(value))]] : [],
      ),
    ),
    body: JSON.parse(body, short) as unknown,
  }))
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(requests, undefined, 2)}\n`)
}
