import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { ConfigError } from '../shared/checked-yaml.ts'

/** Where the certificate chain of a listener and its private key are: both PEM. */
export interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

export interface Certificate {
  /** What node:tls needs. */
  readonly tls: SecureContextOptions
  readonly names: string
  readonly validUntil: Date
}

/** Throws a ConfigError that says which file is wrong, and how. */
export function readCertificate(files: CertificateFiles): Certificate {
  const [cert, key] = [read('cert', files.cert), read('key', files.key)]
  const { subject, subjectAltName, validToDate } = parsed(files, cert)
  const tls = { cert, key, minVersion: 'TLSv1.2' } as const
  try {
    createSecureContext(tls)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason =
      code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH'
        ? `does not belong to the certificate in ${files.cert}`
        : `is not a private key without a password, in PEM (${message})`
    throw new ConfigError(`server.tls.key: ${files.key} ${reason}`, { cause: error })
  }
  return { tls, names: subjectAltName ?? subject, validUntil: validToDate }
}

function read(name: keyof CertificateFiles, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new ConfigError(`server.tls.${name}: ${(error as Error).message}`, { cause: error })
  }
}

function parsed({ cert: file }: CertificateFiles, cert: Buffer): X509Certificate {
  try {
    return new X509Certificate(cert)
  } catch (error) {
    throw new ConfigError(`server.tls.cert: ${file} is not a certificate in PEM (${(error as Error).message})`, {
      cause: error,
    })
  }
}
