import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { create } from 'tar'
import { lockedPackages, type LockFile } from '../../src/local-models/files/locked-packages.ts'
import { RUNTIME_NAME, runtimeFiles, type RuntimeFiles } from '../../src/local-models/files/runtime-files.ts'
import { fileServer, type FileServer, type ServedFile } from './file-server.ts'

const glibc = { os: 'linux', cpu: 'x64', libc: 'glibc' } as const

describe('the packages that a workspace needs', () => {
  const lock: LockFile = {
    packages: {
      'packages/it': { dependencies: { shared: '1' }, optionalDependencies: { engine: '1', absent: '1' } },
      'node_modules/shared': { version: '1.0.0', integrity: 'sha512-c2hhcmVk' },
      'node_modules/engine': {
        version: '1.0.0',
        integrity: 'sha512-ZW5naW5l',
        optional: true,
        dependencies: { part: '1' },
        optionalDependencies: { 'for-arm': '1', 'for-musl': '1', '@scope/for-x64': '1' },
      },
      'node_modules/engine/node_modules/part': {
        version: '1.0.0',
        integrity: 'sha512-bmVzdGVk',
        optional: true,
        dependencies: { engine: '1', both: '1' },
      },
      'node_modules/part': { version: '2.0.0', integrity: 'sha512-b3RoZXI=', optional: true },
      'node_modules/both': { version: '1.0.0', integrity: 'sha512-Ym90aA==', devOptional: true },
      'node_modules/for-arm': { version: '1.0.0', integrity: 'sha512-YQ==', optional: true, cpu: ['arm64'] },
      'node_modules/for-musl': { version: '1.0.0', integrity: 'sha512-YQ==', optional: true, libc: ['musl'] },
      'node_modules/@scope/for-x64': {
        name: '@scope/other-name',
        version: '1.0.0',
        integrity: 'sha512-eDY0',
        optional: true,
        os: ['linux'],
        cpu: ['x64'],
        libc: ['glibc'],
      },
    },
  }

  it('are those it depends on, for this platform, that the gateway does not install anyway', () => {
    const found = lockedPackages(lock, 'packages/it', glibc)
    assert.deepEqual(
      found.map(({ name, path, sha512 }) => [name, path, sha512]),
      [
        ['engine', 'node_modules/engine', 'ZW5naW5l'],
        ['part', 'node_modules/engine/node_modules/part', 'bmVzdGVk'],
        ['both', 'node_modules/both', 'Ym90aA=='],
        ['@scope/other-name', 'node_modules/@scope/for-x64', 'eDY0'],
      ],
    )
  })

  it('are found next to the one that needs them, or in any folder above', () => {
    const pinned = (version: string) => ({ version, integrity: `sha512-${version}`, optional: true })
    const deep: LockFile = {
      packages: {
        'packages/it': { dependencies: { a: '1', b: '1' } },
        'packages/it/node_modules/a': { ...pinned('1'), dependencies: { b: '1', c: '1' } },
        'packages/it/node_modules/b': pinned('2'),
        'packages/node_modules/c': pinned('3'),
        'node_modules/b': pinned('4'),
        'node_modules/c': pinned('5'),
      },
    }
    assert.deepEqual(
      lockedPackages(deep, 'packages/it', glibc).map(({ path }) => path),
      ['packages/it/node_modules/a', 'packages/it/node_modules/b', 'packages/node_modules/c'],
    )
  })

  it('are optional, of a known version and hash, and for the platform', () => {
    const kept = (entry: object, platform: object = {}): boolean => {
      const packages = {
        it: { dependencies: { a: '1' } },
        'node_modules/a': { version: '1', integrity: 'sha512-x', ...entry },
      }
      return lockedPackages({ packages }, 'it', { ...glibc, ...platform }).length === 1
    }
    assert.deepEqual(
      [
        kept({}),
        kept({ optional: true }),
        kept({ devOptional: true }),
        kept({ optional: true, version: undefined }),
        kept({ optional: true, integrity: undefined }),
        kept({ optional: true, integrity: 'sha1-x' }),
        kept({ optional: true, os: ['darwin'] }),
        kept({ optional: true, os: ['darwin', 'linux'] }),
        kept({ optional: true, cpu: ['arm64'] }),
        kept({ optional: true, libc: ['glibc'] }),
        kept({ optional: true, libc: ['glibc'] }, { libc: 'musl' }),
        kept({ optional: true, libc: ['glibc'] }, { libc: undefined }),
        kept({ optional: true }, { libc: undefined }),
      ],
      [false, true, true, false, false, false, false, true, false, true, false, false, true],
    )
  })

  it('are pinned for x64 and arm64 in the lock file of Weir, and TypeScript is none of them', () => {
    const weir = JSON.parse(readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8')) as LockFile
    for (const cpu of ['x64', 'arm64']) {
      const names = new Set(lockedPackages(weir, 'packages/local-models', { ...glibc, cpu }).map(({ name }) => name))
      for (const name of [
        'onnxruntime-node',
        'node-llama-cpp',
        `@node-llama-cpp/linux-${cpu}`,
        `@img/sharp-linux-${cpu}`,
      ]) {
        assert.ok(names.has(name), `${name} on ${cpu}`)
      }
      assert.ok(!names.has('typescript') && !names.has('audio-decode'))
    }
  })
})

describe('the runtime of local models', () => {
  const served: Record<string, ServedFile> = {}
  let registry: FileServer
  let folder = ''
  let installation = ''
  const packages: Record<string, { version: string; integrity: string; optional: boolean }> = {}

  const modulesOf = (): string => join(installation, 'packages/local-models/node_modules')
  const runtime = (registryUrl = registry.url): RuntimeFiles =>
    runtimeFiles({ installation, environment: { ...process.env, npm_config_registry: registryUrl } })

  async function publish(name: string, files: Record<string, string>): Promise<void> {
    const source = join(folder, 'source', name)
    const all = { 'package.json': JSON.stringify({ name, version: '1.0.0' }), ...files }
    for (const [path, text] of Object.entries(all)) {
      mkdirSync(dirname(join(source, 'package', path)), { recursive: true })
      writeFileSync(join(source, 'package', path), text)
    }
    const tarball = join(source, 'it.tgz')
    await create({ file: tarball, cwd: source, gzip: true }, ['package'])
    const content = readFileSync(tarball)
    served[`/${name}/-/${name.split('/').at(-1)}-1.0.0.tgz`] = { content }
    const integrity = `sha512-${createHash('sha512').update(content).digest('base64')}`
    packages[`node_modules/${name}`] = { version: '1.0.0', integrity, optional: true }
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'weir-runtime-'))
    registry = await fileServer(served)
    const { platform, arch } = process
    await publish('engine', {
      [`bin/napi-v6/${platform}/${arch}/engine.node`]: 'native',
      'bin/napi-v6/another/x64/engine.node': 'native, for others',
    })
    await publish('@scope/large', { 'data.bin': 'x'.repeat(500_000) })
  })
  after(async () => {
    await registry.close()
    await rm(folder, { recursive: true, force: true })
  })
  beforeEach(async () => {
    installation = await mkdtemp(join(folder, 'installation-'))
    mkdirSync(join(installation, 'packages/local-models'), { recursive: true })
    const workspace = { optionalDependencies: { engine: '1.0.0', '@scope/large': '1.0.0' } }
    const lock = { packages: { 'packages/local-models': workspace, ...packages } }
    writeFileSync(join(installation, 'package-lock.json'), JSON.stringify(lock))
    registry.requests.length = 0
  })

  it('is fetched as the lock file pins it, for this machine only, and leaves nothing else', async () => {
    const files = runtime()
    assert.equal(files.stateOf(), 'missing')
    assert.partialDeepStrictEqual(process.report, { excludeNetwork: true }, 'no name of a peer was resolved')
    const seen: number[] = []
    await files.pull({
      onProgress({ slug, receivedBytes, totalBytes }) {
        assert.equal(slug, RUNTIME_NAME)
        assert.ok(receivedBytes <= (totalBytes ?? 0))
        seen.push(receivedBytes)
      },
    })
    assert.ok(seen.length > 0)
    assert.equal(files.stateOf(), 'present')
    assert.deepEqual(readdirSync(join(modulesOf(), 'engine/bin/napi-v6')), [process.platform])
    assert.deepEqual(readdirSync(join(installation, 'packages/local-models/.fetching')), ['lock'])
    await files.pull()
    assert.equal(registry.requests.length, 2)
  })

  it('counts as present if the installation has no lock file, because its packager decided what to include', () => {
    rmSync(join(installation, 'package-lock.json'))
    assert.equal(runtime().stateOf(), 'present')
  })

  it('is found if npm has installed it with the gateway', () => {
    for (const name of ['engine', '@scope/large']) {
      assert.equal(runtime().isPresent(), false)
      mkdirSync(join(installation, 'node_modules', name), { recursive: true })
      writeFileSync(join(installation, 'node_modules', name, 'package.json'), '{"version":"1.0.0"}')
    }
    assert.equal(runtime().isPresent(), true)
  })

  it('replaces another version', async () => {
    await runtime().pull()
    writeFileSync(join(modulesOf(), 'engine/package.json'), '{"version":"0.9.0"}')
    writeFileSync(join(modulesOf(), 'engine/old.js'), '')
    const files = runtime()
    assert.equal(files.isPresent(), false)
    await files.pull()
    assert.equal(files.isPresent(), true)
    assert.equal(existsSync(join(modulesOf(), 'engine/old.js')), false)
  })

  it('is not installed with a package that is not the pinned one', async () => {
    const path = '/engine/-/engine-1.0.0.tgz'
    const right = served[path]!
    served[path] = { content: Buffer.from('another') }
    await assert.rejects(runtime().pull(), /Could not fetch the runtime of local models: wrong hash of engine@1\.0\.0/)
    served[path] = right
    assert.equal(existsSync(modulesOf()), false)
  })

  it('continues where an interrupted fetch stopped, and explains how else to get it', async () => {
    const path = '/engine/-/engine-1.0.0.tgz'
    const engine = served[path]!
    delete served[path]
    const failure = /answered 404\. npm install --omit=dev in .* installs it too\./
    await assert.rejects(runtime().pull(), failure)
    const downloads = join(installation, 'packages/local-models/.fetching/downloads')
    const large = join(downloads, '@scope+large-1.0.0.tgz')
    writeFileSync(large, served['/@scope/large/-/large-1.0.0.tgz']!.content.subarray(0, 100))
    writeFileSync(join(downloads, 'complete.tgz'), '')
    utimesSync(join(downloads, 'complete.tgz'), 0, 0)
    assert.equal(runtime().stateOf(), 'arriving', 'one of them is being written')
    utimesSync(large, 0, 0)
    assert.equal(runtime().stateOf(), 'missing')
    served[path] = engine
    registry.requests.length = 0
    await runtime().pull()
    assert.ok(registry.requests.some(({ range }) => range === 'bytes=100-'))
    assert.equal(runtime().isPresent(), true)
  })

  it('is fetched once by two services that start together', async () => {
    await Promise.all([runtime().pull(), runtime().pull()])
    assert.equal(registry.requests.length, 2)
  })
})
