import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { refused } from '../../base/arguments.ts'
import type { Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import { keepSecret } from '../../base/redact.ts'
import type { Principal } from './principal.ts'

/** How long a ticket opens a stream. A stream that is open stays open. */
const ticketMs = 60_000

/** What a ticket opens: the stream of a thread, or a voice session on it. */
export type TicketPurpose = 'stream' | 'voice'

/** The thread that a ticket is for. */
interface TicketTarget {
  agentId: string
  threadId: string
}

const shortestSecret = 32

/**
 * Signed tickets for pages, whose `EventSource` and `WebSocket` can't send headers: each opens the stream of one thread, or a voice session
 * on it, for one principal and one resource, within a minute. The ticket of a stream is part of a URL, which proxies log: a reader of those
 * logs must not be able to use it.
 */
export class StreamTickets {
  readonly #secrets: readonly (string | Buffer)[]
  readonly #clock: Clock

  constructor(secret: string | readonly string[] | undefined, clock: Clock) {
    const secrets = secret === undefined ? [] : [secret].flat()
    if (secret !== undefined && !(secrets.length > 0 && secrets.every((one) => typeof one === 'string' && one.length >= shortestSecret))) {
      throw refused('ticketSecret', `a text of at least ${shortestSecret} characters, or a list of them during a rotation`)
    }
    for (const one of secrets) keepSecret(one)
    this.#secrets = secrets.length > 0 ? secrets : [randomBytes(32)]
    this.#clock = clock
  }

  issue(
    { id, scopes }: Principal, resourceId: string, { agentId, threadId }: TicketTarget, purpose: TicketPurpose,
  ): { ticket: string; expiresAt: Date } {
    const exp = this.#clock.now() + ticketMs
    const content = Buffer.from(JSON.stringify({ id, scopes, resourceId, agentId, threadId, exp })).toString('base64url')
    return { ticket: `${content}.${sign(content, this.#secrets[0] ?? '', purpose).toString('base64url')}`, expiresAt: new Date(exp) }
  }

  /** The principal that a ticket was issued to, with access to its resource alone. */
  verify(ticket: string, { agentId, threadId }: TicketTarget, purpose: TicketPurpose): Principal {
    const [content = '', signature = '', ...rest] = ticket.length > 8_192 ? [] : ticket.split('.')
    const given = Buffer.from(signature, 'base64url')
    const isSigned = rest.length === 0 && this.#secrets.some((secret) => isEqual(given, sign(content, secret, purpose)))
    const claims: unknown = isSigned ? JSON.parse(Buffer.from(content, 'base64url').toString('utf8')) : undefined
    if (!isObject(claims) || claims.agentId !== agentId || claims.threadId !== threadId || !(Number(claims.exp) > this.#clock.now())) {
      const opens = purpose === 'voice' ? 'a voice session on' : 'the stream of'
      const message = `This ticket is not valid, or no longer. Ask for a new one: it opens ${opens} one thread for a minute.`
      throw new HeedError('unauthorized', message)
    }
    const { id, scopes, resourceId } = claims as { id: string; scopes?: string[]; resourceId: string }
    return { id, resources: [resourceId], ...(scopes ? { scopes } : {}) }
  }
}

/** The prefix keeps signatures with the same secret for other purposes apart, so that a ticket in a URL opens nothing but its stream. */
function sign(content: string, secret: string | Buffer, purpose: TicketPurpose): Buffer {
  return createHmac('sha256', secret).update(`heed ${purpose} ticket\n${content}`).digest()
}

function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}
