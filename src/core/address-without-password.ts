/** An address as people may see it: without the user, the password and the parameters, which may contain one, too. */
export function withoutPassword(address: string): string {
  return address.replace(/\?.*$/s, '').replace(/\/\/.*@/s, '//')
}
