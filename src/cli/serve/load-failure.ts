import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, isHeedError } from '../../base/errors.ts'
import { exitCodes, Failure } from '../shell/failure.ts'

const rewrites: ReadonlyArray<{ construct: RegExp; rewrite: string }> = [
  { construct: /enum/i, rewrite: 'Write an object instead of the enum: const Color = { red: \'red\' } as const' },
  { construct: /namespace|module/i, rewrite: 'Write a module or an object instead of the namespace.' },
  { construct: /parameter propert/i, rewrite: 'Declare the field and assign it in the constructor.' },
  { construct: /import/i, rewrite: 'Write import … from instead of import … = require().' },
]

/**
 * Why the module of a user did not load: what, where, and what to do. Frames of Node and of Heed are left out. `last` is the file that was
 * read last.
 */
export function loadFailure(error: unknown, file: string, last = file): Failure {
  if (error instanceof Failure) return error
  const { code, message = describe(error) } = Object(error) as { code?: unknown; message?: string }
  const place = placeOf(error) ?? (error instanceof SyntaxError ? placeInScript(last) : undefined)
  const options = { place: place ?? shown(file), cause: error, details: { file: shown(file) } }
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
    const { rewrite } = rewrites.find(({ construct }) => construct.test(message)) ?? { rewrite: 'Write it in JavaScript.' }
    const remedy = `${rewrite}\nOr compile it while it loads: npm i -D tsx, then NODE_OPTIONS='--import tsx'`
    const what = `Node strips types, and does not compile this: ${firstLine(message)}.`
    return new Failure(exitCodes.failed, what, { ...options, code: 'typescript_syntax', remedy })
  }
  if (error instanceof SyntaxError || code === 'ERR_INVALID_TYPESCRIPT_SYNTAX')
    return new Failure(exitCodes.failed, `${firstLine(message)}.`, { ...options, code: 'syntax_error' })
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'ERR_UNSUPPORTED_DIR_IMPORT') {
    const what = firstLine(message).replaceAll(`${process.cwd()}/`, '')
    const importer = /imported from (.+)$/.exec(firstLine(message))?.[1] ?? file
    return new Failure(exitCodes.failed, `${what}.`, { ...options, place: shown(importer), code: 'module_not_found', ...remedyFor(error) })
  }
  if (isHeedError(error)) return new Failure(exitCodes.failed, message, { ...options, code: error.code })
  return new Failure(exitCodes.failed, message, { ...options, code: 'load_failed' })
}

/** What to do about a module that was not found: Node needs the extension of a file, and a package has to be installed. */
function remedyFor(error: unknown): { remedy?: string } {
  const { url, message = '' } = Object(error) as { url?: unknown; message?: string }
  const packageName = /Cannot find package '([^']+)'/.exec(message)?.[1]
  if (packageName !== undefined && !packageName.startsWith('/')) return { remedy: `npm install ${packageName}` }
  if (typeof url !== 'string' || !url.startsWith('file:')) return {}
  const path = fileURLToPath(url)
  const found = ['.ts', '.js', '.mjs', '/index.ts', '/index.js'].find((ending) => existsSync(path + ending))
  return found === undefined ? {} : { remedy: `Write the whole name of the file: ${shown(path)}${found}` }
}

const ownFolder = new URL('.', import.meta.url).href.replace(/\/src\/cli\/serve\/$/, '/src/')

/**
 * Where an error came from: `file:line:column` of the first line of its stack that is neither of Node nor of this package. A syntax error
 * names its file and line first, and has no frames.
 */
function placeOf(error: unknown): string | undefined {
  const stack = error instanceof Error && typeof error.stack === 'string' ? error.stack : ''
  const head = placeInHead(stack)
  if (head !== undefined) return head
  for (const [, url = '', line, column] of stack.matchAll(/(file:\/\/[^\s()]+?):(\d+):(\d+)/g))
    if (!url.startsWith(ownFolder) && !url.includes('/node_modules/')) return `${shown(decodePath(url))}:${line}:${column}`
  return undefined
}

/** Node prints the file and the line first, then the line with a mark below; no mark where the file ends too early. */
function placeInHead(text: string): string | undefined {
  const [, path, line] = /^((?:file:\/\/)?\/[^\n]*?):(\d+)\n/.exec(text) ?? []
  if (path === undefined) return undefined
  const place = `${shown(decodePath(path))}:${line}`
  const margin = /^( *)\^+ *$/m.exec(text)?.[1]
  return margin === undefined ? place : `${place}:${margin.length + 1}`
}

/** The place of a syntax error in JavaScript, which is in no error that a program gets: Node prints it. */
function placeInScript(file: string): string | undefined {
  if (/\.[cm]?tsx?$/.test(file)) return undefined
  return placeInHead(spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: 10_000 }).stderr ?? '')
}

function decodePath(text: string): string {
  return text.startsWith('file:') ? fileURLToPath(text) : decodeURI(text)
}

function shown(file: string): string {
  const path = relative(process.cwd(), file)
  return path.startsWith('..') ? file : path
}

function firstLine(message: string): string {
  return (message.trim().split('\n')[0] ?? '').replace(/\.$/, '')
}
