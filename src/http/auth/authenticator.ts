import type { Clock } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { isPromise } from '../../base/promises.ts'
import type { Logger } from '../../base/logger.ts'
import { findProxyHeader, isLoopback, type HttpRequest } from '../request/exchange.ts'
import { localPrincipal, principalFlaw, type Authenticate, type Principal } from './principal.ts'

/** How long `auth` may take. */
const authMs = 30_000

/** Finds the principal of each request with the server's `auth`. An `auth` that never resolves blocks no request and no `close()`. */
export class Authenticator {
  readonly #auth: Authenticate | 'local' | undefined
  readonly #clock: Clock
  readonly #logger: Logger
  /** Reject the requests whose `auth` is pending. */
  readonly #pending = new Set<(reason: HeedError) => void>()
  #closed = false

  constructor(auth: Authenticate | 'local' | undefined, { clock, logger }: { clock: Clock; logger: Logger }) {
    this.#auth = auth
    this.#clock = clock
    this.#logger = logger
  }

  authenticate(request: HttpRequest): Principal | Promise<Principal> {
    const auth = this.#auth
    if (auth === 'local') {
      // A page of another site whose name resolves to this machine still sends that name in `Host`.
      if (isLoopback(request.hostname)) return localCaller(request)
      throw new HeedError('unauthorized', 'This server only accepts requests from this machine. Call it as localhost, or configure auth.')
    }
    if (!auth) {
      throw new HeedError(
        'unauthorized',
        "This server has no auth and rejects every request. Pass auth: a function that returns a principal, apiKeys(), jwt(), or 'local'.",
      )
    }
    return this.#run(auth, request)
  }

  /** Rejects the requests whose `auth` is pending. None of them has started anything, so a client can repeat it elsewhere. */
  close(): void {
    this.#closed = true
    for (const reject of this.#pending) reject(serverClosing())
  }

  async #run(auth: Authenticate, request: HttpRequest): Promise<Principal> {
    let principal: Principal | null | undefined
    let flaw: string | undefined
    try {
      const result = auth(request.fetchRequest, { logger: this.#logger })
      principal = isPromise(result) ? await this.#inTime(result) : result
      flaw = principal ? principalFlaw(principal) : undefined
    } catch (error) {
      if (isHeedError(error)) throw error
      throw new HeedError('unauthorized', 'Authentication failed.', { cause: error })
    }
    if (!principal)
      throw new HeedError('unauthorized', 'Credentials are missing or unknown. Send an Authorization header that this server accepts.')
    if (flaw === undefined) return principal
    this.#logger.error('auth returned an invalid principal; the request was rejected', { flaw })
    throw new HeedError('unauthorized', 'Authentication failed.')
  }

  async #inTime<T>(work: Promise<T>): Promise<T> {
    const cut = Promise.withResolvers<never>()
    const timedOut = () => cut.reject(new HeedError('unauthorized', 'Authentication timed out. Try again.', { retryable: true }))
    const timer = this.#clock.after(authMs, timedOut, { background: true })
    this.#pending.add(cut.reject)
    if (this.#closed) cut.reject(serverClosing())
    try {
      return await Promise.race([work, cut.promise])
    } finally {
      timer.cancel()
      this.#pending.delete(cut.reject)
    }
  }
}

/** A proxy on this machine passes requests of the whole network on, and may write its own `Host`. */
function localCaller(request: HttpRequest): Principal {
  const header = findProxyHeader(request)
  if (header === undefined) return localPrincipal
  throw new HeedError(
    'unauthorized',
    `This server has no auth and the request came through a proxy (it has the header ${header}). Configure auth, apiKeys() or jwt(), ` +
      'or call the server directly from this machine.',
  )
}

function serverClosing(): HeedError {
  return new HeedError('closed', 'This server is closing and has not started the request. Send it again.', { retryable: true })
}
