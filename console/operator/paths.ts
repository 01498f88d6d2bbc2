/** The addresses of pages. */

export const lanePath = (lane: string): string => `/console/queues/${lane.split('/').map(encodeURIComponent).join('/')}`

export const modelPath = (model: string): string =>
  `/console/models/${model.split('/').map(encodeURIComponent).join('/')}`

export const workspacePath = (name: string): string => `/console/workspaces/${encodeURIComponent(name)}`
