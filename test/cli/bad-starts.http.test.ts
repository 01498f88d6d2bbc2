import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { keptOperatorToken } from '../../src/workspaces/sessions/operator-token.ts'
import { startService } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { openStore } from '../../src/store/open.ts'
import { commandLine } from '../support/command-line.ts'
import { cliWithFileLimit } from '../support/limited-cli.ts'
import { someOf } from '../support/long-run.ts'
import { modelEntry } from '../support/weir.ts'

/** A start that cannot work says so in one line, with what to do about it, and loses nothing. */

interface Installation {
  readonly dataDir: string
  readonly config: string
}

const OLD_DATABASE = new URL('../fixtures/data-directory-1/weir.db', import.meta.url)

function installation(t: TestContext): Installation {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bad-start-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const config = join(folder, 'weir.yaml')
  writeFileSync(
    config,
    stringify({
      server: { port: 0, admin_port: 0 },
      log: { level: 'silent' },
      files: { kind: 'local' },
      models: [modelEntry(['http://127.0.0.1:9/v1'])],
    }),
  )
  return { dataDir: join(folder, 'data'), config }
}

/** With 37 rows, two invoices, and three requests that were under way when it stopped. */
function usedInstallation(t: TestContext): Installation {
  const it = installation(t)
  mkdirSync(it.dataDir)
  copyFileSync(OLD_DATABASE, join(it.dataDir, 'weir.db'))
  return it
}

const serveArgs = ({ dataDir, config }: Installation): string[] => ['serve', '--config', config, '--data', dataDir]

async function startAndStop({ dataDir, config }: Installation): Promise<void> {
  const service = await startService(loadConfig({ config, data: dataDir }, {}))
  await service.stop()
}

async function assertRows({ dataDir }: Installation, expected: number): Promise<void> {
  const store = await openStore({ dataDir, exclusive: false })
  try {
    const { rows, problems } = await reconcileLedger(store)
    assert.deepEqual([rows, problems], [expected, []])
  } finally {
    await store.close()
  }
}

function assertOneLine(result: { code: number | null; stdout: string; stderr: string }, line: RegExp): void {
  assert.deepEqual([result.code, result.stdout], [1, ''], result.stderr)
  assert.match(result.stderr, /^weir: [^\n]+\n$/)
  assert.match(result.stderr, line)
}

describe('a start on a full disk', () => {
  const line = /cannot be written.*check the disk and its free space, and try again|the disk is full/

  // The limits stop it at different files: the lock, the database, its log, and the small files after them.
  for (const bytes of someOf([0, 1024, 4096, 8192, 32_768, 65_536], 1)) {
    it(`with room for files of ${bytes} bytes loses no existing data`, async (t) => {
      const it = usedInstallation(t)
      assertOneLine(await cliWithFileLimit(bytes, serveArgs(it)), line)
      await startAndStop(it)
      await assertRows(it, 40)
    })

    it(`with room for files of ${bytes} bytes does not corrupt a new directory`, async (t) => {
      const it = installation(t)
      assertOneLine(await cliWithFileLimit(bytes, serveArgs(it)), line)
      await startAndStop(it)
      await assertRows(it, 0)
    })
  }

  it('leaves no partial operator token or link secret behind', async (t) => {
    const it = usedInstallation(t)
    // What a full disk left behind: the files were created, and nothing could be written to them.
    writeFileSync(join(it.dataDir, 'operator-token'), '')
    writeFileSync(join(it.dataDir, 'link-secret'), '')
    await startAndStop(it)
    assert.match(readFileSync(join(it.dataDir, 'operator-token'), 'utf8'), /^weir_operator_[0-9a-f]{64}\n$/)
    assert.match(readFileSync(join(it.dataDir, 'link-secret'), 'utf8'), /^[0-9a-f]{64}\n$/)
    assert.ok(!existsSync(join(it.dataDir, 'operator-token.part')))
    assert.equal(keptOperatorToken(it.dataDir), readFileSync(join(it.dataDir, 'operator-token'), 'utf8').trim())
  })
})

describe('a start on a directory that is not writable', () => {
  it('reports that the directory is below a file', async (t) => {
    const { dataDir, config } = installation(t)
    writeFileSync(dataDir, 'a file')
    const below = { dataDir: join(dataDir, 'data'), config }
    assertOneLine(await commandLine(serveArgs(below)), /cannot be written \(.*choose another with --data/)
    assertOneLine(await commandLine(serveArgs({ dataDir, config })), /cannot be written \(.*choose another with --data/)
    assert.equal(readFileSync(dataDir, 'utf8'), 'a file')
  })

  it('reports that the file system refuses it', async (t) => {
    const { config } = installation(t)
    assertOneLine(await commandLine(serveArgs({ dataDir: '/proc/weir-data', config })), /cannot be (written|created)/)
    assertOneLine(await commandLine(serveArgs({ dataDir: '/proc/self', config })), /cannot be written \(.*--data/)
  })
})

describe('a start on a damaged database', () => {
  const damages: readonly [string, (file: string) => void][] = [
    ['with a garbage header', (file) => writeFileSync(file, Buffer.alloc(20_000, 'x'))],
    ['that was cut short', (file) => truncateSync(file, 20_000)],
    ['that was cut within its header', (file) => truncateSync(file, 50)],
    ['whose schema is unreadable', (file) => writeFileSync(file, overwritten(readFileSync(file), 100, 3000))],
  ]
  for (const [what, damage] of damages) {
    it(`${what} is refused, and the file is unchanged`, async (t) => {
      const it = usedInstallation(t)
      const file = join(it.dataDir, 'weir.db')
      copyFileSync(file, `${it.dataDir}.good`)
      damage(file)
      const damaged = readFileSync(file)
      assertOneLine(
        await commandLine(serveArgs(it)),
        /is damaged \(.*\) and was left as it is: restore a backup with weir restore/,
      )
      assert.deepEqual(readFileSync(file), damaged)
      // As the operator would put it right.
      renameSync(`${it.dataDir}.good`, file)
      await startAndStop(it)
      await assertRows(it, 40)
    })
  }

  for (const what of ['empty', 'missing'] as const) {
    it(`that is ${what} does not count as a new installation`, async (t) => {
      const it = usedInstallation(t)
      await startAndStop(it)
      const file = join(it.dataDir, 'weir.db')
      renameSync(file, `${it.dataDir}.good`)
      if (what === 'empty') writeFileSync(file, '')
      assertOneLine(await commandLine(serveArgs(it)), /is damaged \(weir\.db is missing or empty\)/)
      renameSync(`${it.dataDir}.good`, file)
      await startAndStop(it)
      await assertRows(it, 40)
    })
  }
})

function overwritten(bytes: Buffer, from: number, to: number): Buffer {
  return Buffer.from(bytes).fill(0xee, from, to)
}
