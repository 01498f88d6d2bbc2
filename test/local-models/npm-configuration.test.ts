import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
  it('is in the home folder and in the folder of the process, of which the nearer one wins', async (t) => {
    const home = mkdtempSync(join(folder, 'home-'))
    const project = mkdtempSync(join(folder, 'project-'))
    const { HOME } = process.env
    const cwd = process.cwd()
    t.after(() => {
      Object.assign(process.env, { HOME })
      process.chdir(cwd)
    })
    Object.assign(process.env, { HOME: home })
    process.chdir(project)
    mkdirSync(join(project, 'etc'))
    writeFileSync(join(project, 'etc/npmrc'), '@global:registry=http://wrong.example')
    writeFileSync(join(home, '.npmrc'), '@user:registry=http://home.example\n@both:registry=http://home.example')
    writeFileSync(join(project, '.npmrc'), '@both:registry=http://project.example')
    const npm_config_registry = 'http://usual.example'
    const hosts = ['@user/x', '@both/x', '@global/x'].map(
      async (name) => new URL((await tarballAddress(name, '1.0.0', { npm_config_registry })).url).host,
    )
    assert.deepEqual(await Promise.all(hosts), ['home.example', 'project.example', 'usual.example'])
  })

  it('names the registry that npm itself uses, which is asked once, if nothing else does', async () => {
    const bin = mkdtempSync(join(folder, 'bin-'))
    const asked = join(bin, 'asked')
    writeFileSync(join(bin, 'npm'), `#!/bin/sh\necho "$@" >> ${asked}\necho http://npm.example/\n`, { mode: 0o755 })
    const missing = join(folder, 'missing')
    const unset = { PATH: `${bin}:/bin:/usr/bin`, npm_config_globalconfig: missing, npm_config_userconfig: missing }
    for (const name of ['engine', 'other']) {
      const { url } = await tarballAddress(name, '1.0.0', unset)
      assert.equal(url, `http://npm.example/${name}/-/${name}-1.0.0.tgz`)
    }
    assert.equal(readFileSync(asked, 'utf8'), 'config get registry\n')
  })
})
