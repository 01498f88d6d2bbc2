/** The addresses of pages. */

export const lanePath = (lane: string): string => `/console/queues/${lane.split('/').map(encodeURIComponent).join('/')}`

export const workspacePath = (name: string): string => `/console/workspaces/${encodeURIComponent(name)}`
