import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { loadConfig, type Config } from '../../src/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-files-config-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'weir.yaml')
const secrets = { KEY: 'access', SECRET: 'secret' }

function load(text: string, environment: NodeJS.ProcessEnv = secrets): Config {
  writeFileSync(file, text)
  return loadConfig({ config: file }, environment)
}

const s3 =
  'kind: s3, endpoint: "http://minio:9000", bucket: pictures, region: r, access_key_env: KEY, secret_key_env: SECRET'

describe('file storage in weir.yaml', () => {
  it('is off by default', () => {
    assert.equal(load('').files(), undefined)
    assert.equal(loadConfig({}, { WEIR_DATA_DIR: folder }).files(), undefined)
  })

  it('has defaults', () => {
    assert.deepEqual(load('files: { kind: local }').files(), {
      kind: 'local',
      publicUrl: undefined,
      linkTtlSeconds: 3600,
      maxBytes: 10_737_418_240,
    })
    assert.deepEqual(load(`files: { ${s3} }`).files(), {
      kind: 's3',
      endpoint: 'http://minio:9000',
      bucket: 'pictures',
      region: 'r',
      accessKey: 'access',
      secretKey: 'secret',
      prefix: '',
      publicUrl: undefined,
      linkTtlSeconds: 3600,
    })
    const prefixed = load(`files: { ${s3}, prefix: "weir/" }`).files()
    assert.ok(prefixed?.kind === 's3' && prefixed.prefix === 'weir/')
  })

  it('needs its secrets only when it is used, not for a command that stores nothing', () => {
    const config = load(`files: { ${s3} }`, { KEY: 'access' })
    assert.throws(
      () => config.files(),
      /weir\.yaml:1: files\.secret_key_env: the environment variable SECRET is not set/,
    )
  })

  const wrong: readonly [string, RegExp][] = [
    ['files: {}', /files\.kind: .*one of local, s3/],
    ['files: { kind: ftp }', /files\.kind: must be one of local, s3, but is "ftp"/],
    ['files: { kind: local, bucket: x }', /files\.bucket: is not a known key; allowed here: kind, public_url/],
    [
      'files: { kind: local, public_url: example.com }',
      /files\.public_url: must be an http:\/\/ or https:\/\/ address/,
    ],
    ['files: { kind: local, link_ttl_seconds: 0 }', /files\.link_ttl_seconds: must be an integer from 1 to 31536000/],
    ['files: { kind: local, max_bytes: 5 }', /files\.max_bytes: must be an integer from 1048576/],
    ['files: { kind: s3 }', /files\.endpoint: /],
    [`files: { ${s3}, prefix: "../x?" }`, /files\.prefix: must be a prefix for file names/],
    [`files: { ${s3.replace('pictures', 'Bad_Bucket')} }`, /files\.bucket: must be a name of 3 to 63/],
    [`files: { ${s3}, link_ttl_seconds: 604801 }`, /files\.link_ttl_seconds: must be an integer from 1 to 604800/],
    ['images: { max_bytes: 1 }', /images\.max_bytes: must be an integer from 1024/],
    ['images: { max_side_px: 0 }', /images\.max_side_px: must be an integer from 1/],
  ]
  for (const [text, message] of wrong) {
    it(`is refused with a message about the mistake: ${text.slice(0, 60)}`, () =>
      assert.throws(() => load(text), message))
  }

  it('needs a public URL when the service listens on every address', () => {
    for (const host of ['0.0.0.0', '::']) {
      const text = `server: { host: '${host}' }\nfiles: { kind: local }`
      assert.throws(
        () => load(text).files(),
        /files\.public_url: is required when the service listens on every address/,
      )
    }
    const given = load('server: { host: 0.0.0.0 }\nfiles: { kind: local, public_url: "https://x.example/w" }').files()
    assert.equal(given?.publicUrl, 'https://x.example/w')
  })
})
