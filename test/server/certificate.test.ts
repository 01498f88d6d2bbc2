import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readCertificate } from '../../src/server/certificate.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'

const file = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}.pem`, import.meta.url))
const [cert, key] = [file('first.cert'), file('first.key')]

describe('the files of a certificate', () => {
  it('are what node:tls needs, with the names and the last day', () => {
    const { tls, names, validUntil } = readCertificate({ cert, key })
    assert.deepEqual(tls, { cert: readFileSync(cert), key: readFileSync(key), minVersion: 'TLSv1.2' })
    assert.equal(names, 'DNS:first.example.com, IP Address:127.0.0.1')
    assert.equal(validUntil.toISOString(), '2126-10-24T19:44:53.000Z')
    const unnamed = readCertificate({ cert: file('unnamed.cert'), key: file('unnamed.key') })
    assert.equal(unnamed.names, 'O=Weir\nCN=unnamed')
  })

  it('are refused with the name of the wrong file, and what is wrong', () => {
    const refusal = (files: { cert: string; key: string }): Error => {
      try {
        readCertificate(files)
      } catch (error) {
        assert.ok(error instanceof ConfigError)
        assert.ok(error.cause instanceof Error)
        return error
      }
      return assert.fail('they were taken')
    }
    const missing = file('missing')
    assert.match(refusal({ cert: missing, key }).message, /^server\.tls\.cert: ENOENT: .*missing\.pem/)
    assert.match(refusal({ cert, key: missing }).message, /^server\.tls\.key: ENOENT: .*missing\.pem/)
    assert.match(
      refusal({ cert: key, key }).message,
      /^server\.tls\.cert: \S+first\.key\.pem is not a certificate in PEM \(.+\)$/,
    )
    assert.match(
      refusal({ cert, key: cert }).message,
      /^server\.tls\.key: \S+first\.cert\.pem is not a private key without a password, in PEM \(.+\)$/,
    )
    assert.match(
      refusal({ cert, key: file('locked.key') }).message,
      /locked\.key\.pem is not a private key without a pass/,
    )
    assert.equal(
      refusal({ cert, key: file('second.key') }).message,
      `server.tls.key: ${file('second.key')} does not belong to the certificate in ${cert}`,
    )
  })
})
