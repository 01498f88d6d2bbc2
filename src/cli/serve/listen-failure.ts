import type { Config } from '../../config.ts'

/** Reports which port it is, where it was set, and what to do; undefined for any other error. */
export function listenFailure(
  error: unknown,
  { port, settings }: Pick<Config, 'port' | 'settings'>,
): string | undefined {
  const { code, syscall, address, port: tried } = error as NodeJS.ErrnoException & { address?: string; port?: number }
  if (syscall !== 'listen' || tried === undefined) return undefined
  const [portKey, hostKey, choices] =
    tried === port
      ? ['server.port', 'server.host', '--port N, WEIR_PORT or server.port']
      : ['server.admin_port', 'server.admin_host', 'WEIR_ADMIN_PORT or server.admin_port']
  const chosenBy = (key: string): string => {
    const source = settings.find((setting) => setting.key === key)?.source ?? 'default'
    return source === 'default' ? `the default of ${key}` : source.startsWith('-') ? source : `${source}, ${key}`
  }
  switch (code) {
    case 'EADDRINUSE':
      return `port ${tried} on ${address} is in use (the port comes from ${chosenBy(portKey)}); stop the program that uses it, or choose another port with ${choices}`
    case 'EACCES':
      return `this user may not listen on port ${tried} (it comes from ${chosenBy(portKey)}); choose a port above 1023 with ${choices}`
    case 'EADDRNOTAVAIL':
      return `${address} is not an address of this machine (it comes from ${chosenBy(hostKey)}); correct ${hostKey}`
    default:
      return undefined
  }
}
