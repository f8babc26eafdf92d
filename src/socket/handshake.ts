import { createHash } from 'node:crypto'
import { HeedError } from '../base/errors.ts'

/** A request as a handshake reads it. */
export interface UpgradeRequest {
  readonly method: string
  /** A header by its name in lower case. */
  header(name: string): string | null
}

const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** True for a request that asks for a WebSocket, whether or not it can have one. */
export function asksForSocket(request: UpgradeRequest): boolean {
  return hasToken(request.header('upgrade'), 'websocket') && hasToken(request.header('connection'), 'upgrade')
}

/** Rejects a request that is no handshake of RFC 6455, version 13. */
export function checkHandshake(request: UpgradeRequest): void {
  if (request.method !== 'GET') throw new HeedError('method_not_allowed', 'A WebSocket is opened with GET.')
  if (!asksForSocket(request)) {
    const message = 'This route is a WebSocket. Send Connection: Upgrade and Upgrade: websocket, to a server of heed/server.'
    throw new HeedError('upgrade_required', message)
  }
  if (request.header('sec-websocket-version')?.trim() !== '13') {
    throw new HeedError('upgrade_required', 'The version of the WebSocket protocol is not supported. Send Sec-WebSocket-Version: 13.')
  }
  const key = request.header('sec-websocket-key')?.trim() ?? ''
  // 16 bytes in base64.
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key)) {
    const details = { field: 'Sec-WebSocket-Key' }
    throw new HeedError('invalid_argument', 'The header Sec-WebSocket-Key is missing or invalid.', { details })
  }
}

/** The subprotocols that a request offers, as it wrote them. */
export function offeredProtocols(request: UpgradeRequest): string[] {
  return (request.header('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim()).filter((name) => name !== '')
}

/** The head of the response that opens the WebSocket. */
export function openingHead(request: UpgradeRequest, protocol: string | undefined): string {
  const accept = createHash('sha1').update(`${request.header('sec-websocket-key')?.trim()}${guid}`).digest('base64')
  const lines = [
    'HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${accept}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

function hasToken(header: string | null, token: string): boolean {
  return (header ?? '').toLowerCase().split(',').some((one) => one.trim() === token)
}
