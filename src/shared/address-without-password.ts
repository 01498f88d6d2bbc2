/** An address that is safe to show: without the user, the password and the parameters, which may contain one, too. */
export function withoutPassword(address: string): string {
  const [plain = ''] = address.split('?', 1)
  const start = plain.indexOf('//') + 2
  const end = plain.lastIndexOf('@') + 1
  return start >= 2 && end > start ? plain.slice(0, start) + plain.slice(end) : plain
}
