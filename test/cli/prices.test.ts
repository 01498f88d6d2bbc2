import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { stringify } from 'yaml'
import { commandLine } from '../support/command-line.ts'
import { modelEntry } from '../support/weir.ts'

describe('weir prices set', () => {
  it('accepts image prices by size and quality, and refuses a list that it cannot read', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-prices-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const config = join(folder, 'weir.yaml')
    const image = modelEntry(['http://127.0.0.1:1/v1'], { categories: ['image'], pricing: { per_image: '0.04' } })
    writeFileSync(config, stringify({ models: [image] }))
    const run = (...args: string[]) =>
      commandLine([...args, '--config', config, '--data', join(folder, 'data'), '--json'])
    const set = (list: string) =>
      run('prices', 'set', '--workspace', 'acme', '--model', 'meta/test-8b', '--image-prices', list)
    await run('workspaces', 'create', 'acme')
    const given = (await set('1024x1792=0.08,1024x1792:hd=0.12')).json<{ pricing: object }>()
    assert.deepEqual(given.pricing, {
      image_prices: [
        { size: '1024x1792', per_image: '0.08' },
        { size: '1024x1792', quality: 'hd', per_image: '0.12' },
      ],
    })
    for (const wrong of ['1024x1792:best=0.12', '1024x1792', 'large=0.12']) {
      const { code, stderr } = await set(wrong)
      assert.deepEqual([code, /SIZE\[:QUALITY\]=PRICE/.test(stderr)], [2, true], stderr)
    }
  })
})
