import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { installedVersion, type AgentName } from './agent-process.ts'

/** What an agent did, with what was measured. scripts/agents.mjs words it for docs/clients.md. */
export interface Deeds {
  /** A session that changed a file: its calls of the model, and the tools that the agent used. */
  readonly edited: { readonly calls: number; readonly tools: readonly string[] }
  /** An interruption in the middle of an answer. */
  readonly interrupted: { readonly engineStoppedMs: number; readonly billedTokens: number }
  /** What it said when its conversation did not fit. */
  readonly fullContext: { readonly said: string }
}

const file = new URL('deeds/', new URL('../fixtures/agents/', import.meta.url))

/** Writes it to test/fixtures/agents/deeds, beside what the agent did before, if WEIR_KEEP_REQUESTS is set. */
export function keepDeed<Deed extends keyof Deeds>(name: AgentName, deed: Deed, result: Deeds[Deed]): void {
  if (!process.env['WEIR_KEEP_REQUESTS']) return
  mkdirSync(file, { recursive: true })
  const place = new URL(`${name}.json`, file)
  const version = installedVersion(name)
  const before = existsSync(place) ? (JSON.parse(readFileSync(place, 'utf8')) as { version: string }) : undefined
  const kept = before?.version === version ? before : { version }
  writeFileSync(place, `${JSON.stringify({ ...kept, [deed]: result }, undefined, 2)}\n`)
}
