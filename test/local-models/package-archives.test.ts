import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { tarMemberBytes } from '../../src/local-models/files/tar-member.ts'

const LONG = `package/${'long-folder-name/'.repeat(12)}model.bin`

/** A package as the system's tar writes it, with a long path and two members of more than a chunk. */
function tarball(t: TestContext, format: string): { file: string; contents: ReadonlyMap<string, Buffer> } {
  const folder = mkdtempSync(join(tmpdir(), 'weir-tar-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const contents = new Map([
    ['package/a.bin', randomBytes(300_001)],
    [LONG, randomBytes(200_000)],
    ['package/empty', Buffer.alloc(0)],
  ])
  for (const [name, bytes] of contents) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), bytes)
  }
  const file = join(folder, 'package.tgz')
  execFileSync('tar', ['czf', file, `--format=${format}`, '-C', folder, 'package'])
  return { file, contents }
}

async function member(file: string, name: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of tarMemberBytes(file, name)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe('a member of a package', () => {
  for (const format of ['gnu', 'pax', 'ustar']) {
    it(`is what the system's tar packed (${format})`, async (t) => {
      const { file, contents } = tarball(t, format)
      for (const [name, bytes] of contents) assert.ok((await member(file, name)).equals(bytes), name)
      await assert.rejects(member(file, 'package/missing'), /package\/missing is not in the package/)
    })
  }

  it('is refused if the package is truncated, changed or no package, and no reader is left waiting', async (t) => {
    const { file } = tarball(t, 'pax')
    const whole = readFileSync(file)
    for (const length of [0, 1, 20, 600, whole.length >> 1, whole.length - 100]) {
      writeFileSync(file, whole.subarray(0, length))
      await assert.rejects(async () => {
        await member(file, 'package/a.bin')
        await member(file, LONG)
        await member(file, 'package/missing')
      }, `${length} bytes`)
    }
    const changed = gunzipSync(whole)
    changed.write('x', 0)
    writeFileSync(file, gzipSync(changed))
    await assert.rejects(member(file, LONG), /checksum/i, 'the head of another member is damaged')
    writeFileSync(file, randomBytes(5000))
    await assert.rejects(member(file, 'package/a.bin'))
    rmSync(file)
    await assert.rejects(member(file, 'package/a.bin'), { code: 'ENOENT' })
  })
})
