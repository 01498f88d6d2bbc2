import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { localModelsPackage } from '../index.ts'

const read = (folder: string): { readonly version: string; readonly dependencies: Record<string, string> } =>
  JSON.parse(readFileSync(join(import.meta.dirname, '..', folder, 'package.json'), 'utf8'))

describe('the package of local models', () => {
  it('has the version of the gateway, and of what both need the same versions', () => {
    const [own, gateway] = [read('.'), read('../..')]
    assert.equal(own.version, gateway.version)
    for (const [name, version] of Object.entries(own.dependencies)) assert.equal(gateway.dependencies[name], version)
  })

  it('has a host program, and runtimes that load', async () => {
    assert.ok(existsSync(localModelsPackage.hostProgram))
    assert.equal(localModelsPackage.runtimes.length, 2)
    for (const { load } of localModelsPackage.runtimes) await load()
  })
})
