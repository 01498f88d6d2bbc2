/**
 * What the service uses of node:http. An import of the module itself would read everything that it exports, and so load
 * the whole undici that Node has for its WebSocket.
 */
export const { createServer, METHODS, request, STATUS_CODES } = process.getBuiltinModule('node:http')
