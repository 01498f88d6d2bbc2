import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { findMistakes } from '../../src/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-mistakes-'))
after(() => rmSync(folder, { recursive: true }))

function file(content: object | string, name = 'weir.yaml'): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('the mistakes in a configuration', () => {
  it('are found in every variable and option, alone and together', () => {
    const config = file({ models: [] })
    assert.deepEqual(findMistakes({ config }, {}), { file: config, mistakes: [] })
    const wrong = {
      WEIR_PORT: '70000',
      WEIR_ADMIN_PORT: 'x',
      WEIR_OPERATOR_TOKEN: 'short',
      WEIR_DATABASE_URL: 'http://db',
      WEIR_REDIS_URL: 'http://redis',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'no address',
    }
    const all = findMistakes({ config, port: '-1' }, wrong).mistakes.join('\n')
    for (const name of ['--port', ...Object.keys(wrong)])
      assert.ok(all.includes(name.replace(/^OTEL_.*/, 'OTEL_')), name)
    for (const [name, value] of Object.entries(wrong)) {
      const { mistakes } = findMistakes({ config }, { [name]: value })
      assert.ok(
        mistakes.length > 0 && mistakes.every((it) => it.includes('OTEL') || it.includes(name)),
        `${name}: ${mistakes.join()}`,
      )
    }
    assert.match(findMistakes({ config, port: '-1' }, {}).mistakes.join(), /--port/)
  })

  it('are found together, in the file and in the catalog that it names, each once', () => {
    const catalog = file({ models: [{ id: 'no slash' }] }, 'models.yaml')
    const config = file({ server: { port: 'x', drain_ms: -1 }, catalog: 'models.yaml' })
    const { mistakes } = findMistakes({ config, port: 'y' }, { WEIR_PORT: 'z' })
    for (const part of ['--port', 'WEIR_PORT', 'server.port', 'server.drain_ms', catalog])
      assert.equal(mistakes.filter((it) => it.includes(part)).length > 0, true, `${part} in ${mistakes.join('\n')}`)
    assert.equal(new Set(mistakes).size, mistakes.length)
  })

  it('begin with a file that is not there, by option or by variable', () => {
    const missing = join(folder, 'missing.yaml')
    for (const found of [findMistakes({ config: missing }, {}), findMistakes({}, { WEIR_CONFIG: missing })])
      assert.deepEqual(found, { file: undefined, mistakes: [`${missing} does not exist`] })
    const config = file({ models: [] })
    assert.equal(findMistakes({}, { WEIR_CONFIG: config }).file, config)
    assert.equal(findMistakes({ config }, { WEIR_CONFIG: missing }).file, config)
  })

  it('are not in variables that are empty', () => {
    const config = file({ models: [] })
    assert.deepEqual(findMistakes({ config }, { WEIR_PORT: '', WEIR_REDIS_URL: '' }).mistakes, [])
  })
})
