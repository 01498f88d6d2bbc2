/** Several models may share an address. Its change is written once. */
export function healthLog(write: (url: string, isUp: boolean) => void): (url: string, isUp: boolean) => void {
  const down = new Set<string>()
  return (url, isUp) => {
    if (isUp !== down.has(url)) return
    if (isUp) down.delete(url)
    else down.add(url)
    write(url, isUp)
  }
}
