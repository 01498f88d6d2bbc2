import type { Secrets } from '../catalog/file.ts'
import type { CheckedYaml } from '../shared/checked-yaml.ts'
import type { SmtpServer } from '../shared/smtp-server.ts'
import type { FileContent } from './config-file.ts'
import { isLoopback } from './loopback.ts'

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
