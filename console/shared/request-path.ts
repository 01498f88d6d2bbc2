/** The page of a request, in both consoles. */
export const requestPath = (id: string): string => `/console/requests/${encodeURIComponent(id)}`
