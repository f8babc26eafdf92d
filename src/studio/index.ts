import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkNames, checkText, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'

/** The options of `studio()`. */
export interface StudioOptions {
  /** The path below which the pages are. Defaults to `/studio`. */
  path?: string
  /** The folder of the built pages. Defaults to those of this package. */
  folder?: string
}

/** A file of Studio, as the server answers with it. */
export interface StudioFile {
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer>
}

/** The pages of Studio, for the option `studio` of the server. */
export interface Studio {
  /** The path below which they are. */
  readonly path: string
  /**
   * The file of a request's path below `path`. Every path without a file is a view of the one page, so that links to views work. Undefined:
   * a missing asset.
   */
  find(path: string, request: { apiPrefix: string; acceptsBrotli: boolean }): Promise<StudioFile | undefined>
}

/** No script, style, image or request from anywhere but the server itself; images of messages are `data:` URLs. */
const contentSecurityPolicy = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "font-src 'self'", "connect-src 'self'",
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
].join('; ')

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/**
 * Studio: the web page that shows the threads of a server and talks to them, over the server's own routes and with the caller's own rights.
 * Its files are read from this package when they are requested; they load nothing from elsewhere.
 */
export function studio(options: StudioOptions = {}): Studio {
  checkNames('studio()', options, ['path', 'folder'])
  const { path = '/studio', folder = builtPages() } = options
  if (typeof path !== 'string' || !/^(?:\/[\w.~-]+)+$/.test(path)) {
    throw refused('path', "a path such as '/studio': it begins with '/' and does not end with it")
  }
  checkText('folder', folder)
  if (!existsSync(join(folder, 'index.html'))) {
    throw new HeedError('invalid_argument', `There are no pages of Studio in ${folder}. In a clone of Heed, run npm run build.`, {
      details: { option: 'folder' },
    })
  }
  return new StudioPages(path, folder)
}

class StudioPages implements Studio {
  readonly path: string
  readonly #folder: string
  /** The names below `assets`, so that no path of a request reaches the file system. */
  #assets: Promise<ReadonlySet<string>> | undefined

  constructor(path: string, folder: string) {
    this.path = path
    this.#folder = folder
  }

  async find(path: string, { apiPrefix, acceptsBrotli }: { apiPrefix: string; acceptsBrotli: boolean }): Promise<StudioFile | undefined> {
    if (path !== '/assets' && !path.startsWith('/assets/')) return this.#page(apiPrefix)
    this.#assets ??= readdir(join(this.#folder, 'assets')).then((names) => new Set(names))
    const assets = await this.#assets
    const name = path.slice('/assets/'.length)
    const type = types[extname(name)]
    if (type === undefined || !assets.has(name)) return undefined
    const packed = acceptsBrotli && assets.has(`${name}.br`)
    const headers = {
      'content-type': type,
      // The name of a file has the hash of its contents.
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...(packed ? { 'content-encoding': 'br' } : {}),
    }
    return { headers, body: await readFile(join(this.#folder, 'assets', packed ? `${name}.br` : name)) }
  }

  /** The page says where the API and its own files are: a built page does not know where it is mounted. */
  async #page(apiPrefix: string): Promise<StudioFile> {
    const html = await readFile(join(this.#folder, 'index.html'), 'utf8')
    const body = html.replaceAll('"./assets/', `"${this.path}/assets/`).replace('data-api=""', `data-api="${attribute(apiPrefix)}"`)
      .replace('data-base=""', `data-base="${attribute(this.path)}"`)
    return {
      headers: { 'content-type': types['.html'] ?? '', 'cache-control': 'no-store', 'content-security-policy': contentSecurityPolicy },
      body,
    }
  }
}

function attribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
}

/** Beside the built files of this package; for the sources, in `dist`. */
function builtPages(): string {
  return fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '../../dist/studio/' : './studio/', import.meta.url))
}
