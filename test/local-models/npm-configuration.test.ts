import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { tarballAddress } from '../../src/local-models/files/npm-configuration.ts'

describe("npm's configuration", () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-npm-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string, ...lines: readonly string[]): string => {
    writeFileSync(join(folder, name), lines.join('\n'))
    return join(folder, name)
  }
  const globalFile = file('global', 'registry=http://global.example/', '@far:registry=http://far.example/npm')
  const userFile = file(
    'user',
    '# registry=http://comment.example',
    '; registry=http://comment.example',
    '=http://nameless.example',
    'no-value',
    ' registry = "http://user.example/npm/private" ',
    '@near:registry=http://near.example/${PLACE}/${UNKNOWN}',
    '//user.example/npm/private/:_authToken=a=b',
    '//user.example/npm/:_authToken=above',
    '//near.example/:_auth=${SECRET}',
    '//far.example/:_authToken=',
    '//far.example/:_auth=basic',
  )
  const environment = {
    npm_config_globalconfig: globalFile,
    npm_config_userconfig: userFile,
    PLACE: 'here',
    SECRET: 'c2VjcmV0',
  }

  it('names the registry of a scope and the credentials of the nearest path', async () => {
    assert.deepEqual(
      [
        await tarballAddress('engine', '1.2.3', environment),
        await tarballAddress('@near/engine', '1.2.3', environment),
        await tarballAddress('@far/engine', '1.2.3', environment),
        await tarballAddress('@other/engine', '1.2.3', environment),
      ],
      [
        {
          url: 'http://user.example/npm/private/engine/-/engine-1.2.3.tgz',
          headers: { authorization: 'Bearer a=b' },
        },
        {
          url: 'http://near.example/here/@near/engine/-/engine-1.2.3.tgz',
          headers: { authorization: 'Basic c2VjcmV0' },
        },
        { url: 'http://far.example/npm/@far/engine/-/engine-1.2.3.tgz', headers: { authorization: 'Basic basic' } },
        {
          url: 'http://user.example/npm/private/@other/engine/-/engine-1.2.3.tgz',
          headers: { authorization: 'Bearer a=b' },
        },
      ],
    )
  })

  it('is overridden by the environment, and by a file above the global one', async () => {
    const urlOf = async (changes: NodeJS.ProcessEnv) =>
      (await tarballAddress('engine', '1.0.0', { ...environment, ...changes })).url
    assert.deepEqual(
      [
        await urlOf({ npm_config_userconfig: join(folder, 'missing') }),
        await urlOf({ npm_config_registry: 'http://user.example/npm' }),
        await urlOf({ NPM_CONFIG_REGISTRY: 'http://upper.example/' }),
        await urlOf({ npm_config_registry: 'http://lower.example/', NPM_CONFIG_REGISTRY: 'http://upper.example/' }),
      ],
      [
        'http://global.example/engine/-/engine-1.0.0.tgz',
        'http://user.example/npm/engine/-/engine-1.0.0.tgz',
        'http://upper.example/engine/-/engine-1.0.0.tgz',
        'http://lower.example/engine/-/engine-1.0.0.tgz',
      ],
    )
    const above = { ...environment, npm_config_registry: 'http://user.example/npm/other' }
    assert.deepEqual((await tarballAddress('engine', '1.0.0', above)).headers, { authorization: 'Bearer above' })
    const elsewhere = { ...environment, npm_config_registry: 'http://elsewhere.example/' }
    assert.deepEqual((await tarballAddress('engine', '1.0.0', elsewhere)).headers, {})
  })

  it('is in the prefix of the installation if nothing names the global file', async () => {
    const { npm_config_globalconfig: _named, ...unnamed } = environment
    const prefix = mkdtempSync(join(folder, 'prefix-'))
    mkdirSync(join(prefix, 'etc'))
    writeFileSync(join(prefix, 'etc/npmrc'), '@far:registry=http://prefix.example')
    const { url } = await tarballAddress('@far/engine', '1.0.0', { ...unnamed, PREFIX: prefix })
    assert.equal(url, 'http://prefix.example/@far/engine/-/engine-1.0.0.tgz')
  })
})
