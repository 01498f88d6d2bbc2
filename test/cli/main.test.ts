import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { CommandFailed, ProblemsFound, UsageError } from '../../src/cli/command.ts'
import { keys } from '../../src/workspaces/keys/commands/keys.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { cli } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'

async function main(...args: readonly string[]) {
  const { code, stdout, stderr } = await commandLine(args)
  return { code, stdout, stderr }
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string
}

describe('the command line', () => {
  it('shows its version and its help', async () => {
    for (const name of ['--version', '-v']) {
      assert.deepEqual(await main(name), { code: 0, stdout: `weir ${version}\n`, stderr: '' })
    }
    const overview = await main()
    assert.equal(overview.code, 0)
    assert.match(
      overview.stdout,
      /^weir <command> \[options\]\n\nCommands:\n {2}serve {7}run the service\n {2}chat {8}chat /,
    )
    assert.match(overview.stdout, /\n {2}simulate {4}predict .*\n\nRun weir <command> --help .*\nthe version\.\n$/)
    for (const name of ['--help', '-h', 'help']) assert.deepEqual(await main(name), overview)
    const help = await main('keys', 'list', '--help')
    assert.equal(help.code, 0)
    assert.ok(help.stdout.startsWith(`${keys.help}\n\nOptions of every command:\n  --config FILE`))
    assert.ok(help.stdout.endsWith('\n  --help          show this help\n'))
    assert.deepEqual(await main('keys', '-h'), help)
  })

  it('finds every command by its name', async () => {
    const { stdout } = await main()
    const names = [...stdout.matchAll(/^ {2}(\w+) {2,}/gm)].map(([, name]) => name ?? '')
    assert.equal(names.length, 24)
    for (const name of names) {
      const { stdout: help } = await main(name, '--help')
      assert.ok(help.startsWith(`weir ${name}`), name)
    }
  })

  it('suggests the command that was probably meant', async () => {
    const meant = {
      workspace: 'workspaces',
      sevre: 'serve',
      work: 'workspaces',
      keysx: 'keys',
      rec: 'reconcile',
    }
    for (const [name, command] of Object.entries(meant)) {
      const stderr = `weir: there is no command "${name}"; did you mean "${command}"? See: weir --help\n`
      assert.deepEqual(await main(name), { code: 2, stdout: '', stderr })
    }
    for (const name of ['nonsense', 'wo', 'toString', 'spaces']) {
      const stderr = `weir: there is no command "${name}". See: weir --help\n`
      assert.deepEqual(await main(name), { code: 2, stdout: '', stderr })
    }
  })

  it('explains a failure in one line, and shows where it happened only with --debug', async (t) => {
    const failing = async (error: unknown, ...args: readonly string[]) => {
      const run = t.mock.method(keys, 'run', async () => {
        throw error
      })
      const { code, stdout, stderr } = await main('keys', ...args)
      run.mock.restore()
      assert.equal(stdout, '')
      return [code, stderr.trimEnd()]
    }
    const withCode = (code: string, path?: string): Error =>
      Object.assign(new Error(`${code}: no\nmore`), { code, ...(path === undefined ? {} : { path }) })
    assert.deepEqual(await failing(new UsageError('give a name.')), [2, 'weir: give a name. See: weir keys --help'])
    assert.deepEqual(await failing(new UsageError('give a name')), [2, 'weir: give a name. See: weir keys --help'])
    for (const error of [
      new ConfigError('it is wrong'),
      new ApiError('not_found', 'it is wrong'),
      new ProblemsFound('it is wrong'),
      new CommandFailed('it is wrong\nwith details'),
    ]) {
      assert.deepEqual(await failing(error), [1, 'weir: it is wrong'])
    }
    assert.deepEqual(await failing(new Error('a bug\nhere')), [
      1,
      'weir: a bug. This was not expected: run it again with --debug to see where it happened',
    ])
    assert.deepEqual(await failing('a text'), [1, 'weir: a text'])
    assert.deepEqual(await failing(withCode('ENOENT', '/x')), [1, 'weir: /x: there is no such file or directory'])
    assert.deepEqual(await failing(withCode('ENOENT')), [1, 'weir: ENOENT: no'])
    assert.deepEqual(await failing(withCode('EISDIR', '/x')), [1, 'weir: /x is a directory; name a file in it'])
    assert.deepEqual(await failing(withCode('EISDIR')), [1, 'weir: this is a directory; name a file in it'])
    assert.deepEqual(await failing(withCode('EOTHER', '/x')), [1, 'weir: EOTHER: no'])
    const [code, full] = await failing(withCode('ENOSPC', '/x'))
    assert.equal(code, 1)
    assert.match(String(full), /^weir: .*\/x/)
    assert.match(String((await failing(withCode('ENOSPC')))[1]), /^weir: .*a file/)
    const [, stack] = await failing(new Error('a bug'), '--debug')
    assert.match(String(stack), /^weir: Error: a bug\n +at .*main\.test\.ts/)
    assert.deepEqual(await failing('a text', '--debug'), [1, 'weir: a text'])
  })

  it('fails when its output cannot be written, unless the reader has closed the pipe', async (t) => {
    const writing = (code: string) => async () => {
      // Only that of the command line: the test runner writes to the same stream.
      const listener = process.stdout.listeners('error').at(-1)
      for (const message of ['no space', 'later']) listener?.(Object.assign(new Error(message), { code }))
    }
    const full = t.mock.method(keys, 'run', writing('ENOSPC'))
    assert.deepEqual(await main('keys'), {
      code: 1,
      stdout: '',
      stderr: 'weir: the output could not be written: no space\n',
    })
    full.mock.restore()
    const left = t.mock.method(keys, 'run', writing('EPIPE'))
    assert.deepEqual(await main('keys'), { code: 0, stdout: '', stderr: '' })
    left.mock.restore()
  })

  it('exits with the same codes as a process of its own', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-main-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const [misused, failed] = await Promise.all([
      cli(['keys', '--nonsense']),
      cli(['restore', join(folder, 'missing'), '--data', folder]),
    ])
    assert.deepEqual([misused.code, failed.code], [2, 1])
    assert.match(misused.stderr, /^weir: .*\. See: weir keys --help\n$/)
    assert.equal(failed.stderr, `weir: ${join(folder, 'missing')}: there is no such file or directory\n`)
  })
})
