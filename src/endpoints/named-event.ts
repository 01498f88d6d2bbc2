/** A server-sent event with the name that its data has as its type. */
export function namedEvent(event: { readonly type: string; readonly [field: string]: unknown }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
