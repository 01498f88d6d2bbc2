import { BlockList, isIP } from 'node:net'
import type { Secrets } from '../catalog/file.ts'
import type { CheckedYaml } from '../shared/checked-yaml.ts'
import type { SmtpServer } from '../shared/smtp-server.ts'
import type { FileContent } from './config-file.ts'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

function isLoopback(host: string): boolean {
  const version = isIP(host)
  return version === 0 ? host.toLowerCase() === 'localhost' : loopback.check(host, version === 6 ? 'ipv6' : 'ipv4')
}

/** undefined: e-mail is not sent. */
export function smtpFrom(yaml: CheckedYaml<FileContent>, secrets: Secrets): SmtpServer | undefined {
  const { smtp } = yaml.data
  if (!smtp) return undefined
  const { host, secure = false, user, password_env: passwordEnv, from, reply_to: replyTo } = smtp
  return {
    host,
    port: smtp.port ?? (secure ? 465 : 587),
    encryption: secure ? 'tls' : isLoopback(host) ? 'none' : 'starttls',
    from,
    replyTo,
    login() {
      if (user === undefined || passwordEnv === undefined) return undefined
      const password = secrets(passwordEnv)
      if (password === undefined) {
        yaml.mistake(['smtp', 'password_env'], `the environment variable ${passwordEnv} is not set`)
        yaml.requireCorrect()
      }
      return { user, password: password ?? '' }
    },
  }
}
