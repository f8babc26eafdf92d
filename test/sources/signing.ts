import { createHmac } from 'node:crypto'

export const secret = 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ='
export const hubSecret = 'a-secret-of-the-hub'

/** A request signed as Standard Webhooks does. */
export function standard(body: string, { id = 'msg-1', at = Date.now(), key = secret, ...more }: { id?: string; at?: number; key?: string; [header: string]: unknown } = {}): RequestInit {
  const timestamp = String(Math.floor(at / 1_000))
  const signature = createHmac('sha256', Buffer.from(key.slice('whsec_'.length), 'base64')).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = { 'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}`, ...(more as Record<string, string>) }
  return { method: 'POST', body, headers }
}

/** A request signed as GitHub does. */
export function hub(event: string, payload: unknown, delivery = `${event}-1`, key = hubSecret): RequestInit {
  const body = JSON.stringify(payload)
  const signature = `sha256=${createHmac('sha256', key).update(body).digest('hex')}`
  return { method: 'POST', body, headers: { 'content-type': 'application/json', 'x-github-event': event, 'x-github-delivery': delivery, 'x-hub-signature-256': signature } }
}
