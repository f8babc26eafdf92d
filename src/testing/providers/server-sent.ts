import type { ServerResponse } from 'node:http'

/** One server-sent event. */
export function frame(data: unknown, event?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return event === undefined ? `data: ${text}\n\n` : `event: ${event}\ndata: ${text}\n\n`
}

export function beginEvents(response: ServerResponse, headers: Record<string, string>): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...headers })
  response.flushHeaders()
}

/** Resolves when the text has left for the socket, or the socket has gone. */
export function send(response: ServerResponse, text: string): Promise<void> {
  if (text === '' || response.destroyed) return Promise.resolve()
  return new Promise((resolve) => response.write(text, () => resolve()))
}
