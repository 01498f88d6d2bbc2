/** How invoices are sent by e-mail. */
export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** `none` only on this machine. */
  readonly encryption: 'tls' | 'starttls' | 'none'
  readonly from: string
  readonly replyTo: string | undefined
  /** A function, so that only the service looks up the password. undefined: the server asks for none. */
  login(): { readonly user: string; readonly password: string } | undefined
}
