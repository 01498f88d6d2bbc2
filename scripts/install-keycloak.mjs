// npm run install:keycloak: installs Keycloak, for the test of signing in through it (npm run test:slow), into
// ~/.cache/weir/keycloak or WEIR_KEYCLOAK_DIR. Needs Java 17 or later, Maven, which fetches it, and tar. It takes about 180 MB.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

const version = '26.5.6'
const sha256 = 'fa3dd5df90b9ac006712c2f0991be4e8a6cb30ac538e0439ce2f45fc40f4c692'
const archive = `keycloak-quarkus-dist-${version}.tar.gz`
const directory =
  process.env.WEIR_KEYCLOAK_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'weir', 'keycloak')

const folder = mkdtempSync(join(tmpdir(), 'weir-keycloak-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
run('mvn', [
  '--batch-mode',
  '--quiet',
  'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy',
  `-Dartifact=org.keycloak:keycloak-quarkus-dist:${version}:tar.gz`,
  `-DoutputDirectory=${folder}`,
])
const found = createHash('sha256')
  .update(readFileSync(join(folder, archive)))
  .digest('hex')
if (found !== sha256) fail(`${archive} has the SHA-256 ${found}, not ${sha256}.`)
mkdirSync(directory, { recursive: true })
run('tar', ['-xzf', join(folder, archive), '--strip-components=1', '-C', directory])
process.stdout.write(`Keycloak ${version} is in ${directory}. npm run test:slow uses it.\n`)

function run(program, args) {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' })
  if (status !== 0) fail(`${program} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`)
}

function fail(line) {
  process.stderr.write(`${line}\n`)
  process.exit(1)
}
