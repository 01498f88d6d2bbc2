import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { packageIndex } from '../../src/local-models/files/pip-configuration.ts'

describe("pip's configuration", () => {
  let home: string
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'weir-pip-'))
    await mkdir(join(home, '.config', 'pip'), { recursive: true })
    await writeFile(
      join(home, '.config', 'pip', 'pip.conf'),
      '# a comment\n[install]\nindex-url = https://install.example/simple\n[download]\ncert = /download.pem\n' +
        '[global]\nindex-url = https://user:p%40ss@mirror.example/simple\ncert: /global.pem\n',
    )
  })
  after(() => rm(home, { recursive: true, force: true }))

  it('names the index, its credentials and its certificates', async () => {
    assert.deepEqual(await packageIndex({ HOME: home }), {
      url: 'https://mirror.example/simple/',
      headers: { authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}` },
      certificates: '/download.pem',
    })
  })

  it('is overridden by the file that PIP_CONFIG_FILE names', async () => {
    const path = join(home, 'other.conf')
    await writeFile(path, '[global]\nindex-url = https://first.example/\nindex_url = https://other.example/simple/\n')
    const { url, headers } = await packageIndex({ HOME: home, PIP_CONFIG_FILE: path })
    assert.deepEqual({ url, headers }, { url: 'https://other.example/simple/', headers: {} })
  })

  it('is searched in /etc, ~/.pip and XDG_CONFIG_HOME, of which the last one wins', async () => {
    const empty = join(home, 'empty')
    const write = async (folder: string, name: string): Promise<void> => {
      await mkdir(folder, { recursive: true })
      await writeFile(join(folder, 'pip.conf'), `[global]\nindex-url = https://${name}.example/simple/\n`)
    }
    const hostOf = async (environment: NodeJS.ProcessEnv) =>
      new URL((await packageIndex({ HOME: empty, ...environment })).url).host
    await write(join(empty, '.pip'), 'old')
    assert.equal(await hostOf({}), 'old.example')
    await write(join(empty, 'xdg', 'pip'), 'xdg')
    assert.equal(await hostOf({ XDG_CONFIG_HOME: join(empty, 'xdg') }), 'xdg.example')
  })

  it('is overridden by PIP_INDEX_URL and PIP_CERT', async () => {
    const environment = { HOME: home, PIP_INDEX_URL: 'http://near.example/x', PIP_CERT: '/near.pem' }
    assert.deepEqual(await packageIndex(environment), {
      url: 'http://near.example/x/',
      headers: {},
      certificates: '/near.pem',
    })
  })
})
