import { errorResponse } from './request/error-response.ts'
import type { HttpRequest, HttpResponse } from './request/exchange.ts'
import { HeedError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { Studio } from '../studio/index.ts'

/** Answers requests for the pages of Studio. They are public: a browser sends no credentials with the address of a page. */
export class StudioRoute {
  readonly #studio: Studio
  readonly #apiPrefix: string
  readonly #logger: Logger

  constructor(studio: Studio, apiPrefix: string, logger: Logger) {
    this.#studio = studio
    this.#apiPrefix = apiPrefix
    this.#logger = logger
  }

  /** Whether a path is that of a page, or the root, which redirects to Studio. */
  owns(path: string): boolean {
    return path === '/' || isBelow(path, this.#studio.path)
  }

  async respond(request: HttpRequest): Promise<HttpResponse> {
    const { method, path } = request
    try {
      if (method !== 'GET' && method !== 'HEAD') throw new HeedError('method_not_allowed', 'The method is not allowed here. Use GET.')
      if (path === '/') return { status: 302, headers: { location: this.#studio.path, 'cache-control': 'no-store' }, body: null }
      const acceptsBrotli = /\bbr\b/.test(request.header('accept-encoding') ?? '')
      const file = await this.#studio.find(path.slice(this.#studio.path.length), { apiPrefix: this.#apiPrefix, acceptsBrotli })
      if (!file) throw new HeedError('not_found', `There is no file ${path}.`)
      const body = typeof file.body === 'string' ? file.body : new Response(file.body).body
      return { status: 200, headers: { ...file.headers }, body }
    } catch (error) {
      const response = errorResponse(error, this.#logger, { method, path: this.#studio.path })
      if (response.status === 405) response.headers.allow = 'GET, HEAD'
      return response
    }
  }
}

/** Whether a path is the given one or below it. */
export function isBelow(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}/`)
}
