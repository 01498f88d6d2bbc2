import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A Lua script, which Redis caches under its hash. */
export interface Script {
  readonly lua: string
  readonly sha: string
}

export function script(...parts: readonly string[]): Script {
  const lua = parts.join('\n')
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}

/** Reads a Lua file from the folder of a module. */
export function luaBeside(moduleUrl: string, name: string): string {
  return readFileSync(new URL(`./${name}.lua`, moduleUrl), 'utf8')
}
