import type { Statements } from '../../store/sql/statements.ts'

/** Which passages: those with a token, with all that follow, or with any of them. */
export type Match = string | { all: readonly Match[] } | { any: readonly Match[] }

/**
 * Which passages contain which tokens. A database's full-text search is used for its inverted index alone: the same sets of passages on
 * every database give the same ranking, which is computed here.
 */
export interface Words {
  /** Each token once. */
  add(passage: number, tokens: readonly string[]): void
  remove(passage: number): void
  clear(): void
  /** The number of passages with each token. */
  counts(tokens: readonly string[]): number[]
  /** For each match the keys of its first passages, in order. */
  find(matches: readonly Match[], limit: number): number[][]
}

/** The full-text search of SQLite, FTS5, in a file or on a server. */
export class FullTextWords implements Words {
  readonly #index: Statements
  readonly #table: string
  readonly #counts: string

  constructor(index: Statements, prefix = '') {
    this.#index = index
    this.#table = `${prefix}words`
    this.#counts = `${prefix}counts`
  }

  add(passage: number, tokens: readonly string[]): void {
    this.#index.execute(`INSERT INTO ${this.#table} (rowid, text) VALUES (?, ?)`, passage, tokens.join(' '))
  }

  remove(passage: number): void {
    this.#index.execute(`DELETE FROM ${this.#table} WHERE rowid = ?`, passage)
  }

  clear(): void {
    this.#index.execute(`INSERT INTO ${this.#table} (${this.#table}) VALUES ('delete-all')`)
  }

  counts(tokens: readonly string[]): number[] {
    return tokens.map((token) => this.#index.one<{ doc: number }>(`SELECT doc FROM ${this.#counts} WHERE term = ?`, token)?.doc ?? 0)
  }

  find(matches: readonly Match[], limit: number): number[][] {
    // As one JSON string: reading as many rows one by one would cost more than the rest of the search.
    const text = `SELECT json_group_array(rowid) AS keys FROM (SELECT rowid FROM ${this.#table} WHERE ${this.#table} MATCH ? LIMIT ?)`
    return matches.map((match) => {
      const found = this.#index.one<{ keys: string }>(text, written(match, fullTextForm), limit)
      return JSON.parse(found?.keys ?? '[]') as number[]
    })
  }
}

/** The text search of PostgreSQL: `tsvector` with a GIN index. Tokens are stored as they are: the server neither splits nor stems them. */
export class TextSearchWords implements Words {
  readonly #index: Statements

  constructor(index: Statements) {
    this.#index = index
  }

  add(passage: number, tokens: readonly string[]): void {
    const stored = JSON.stringify(tokens.map(storable))
    this.#index.execute(
      'INSERT INTO heed_recall_words (key, words) VALUES (?, array_to_tsvector(ARRAY(SELECT heed_each(?))))', passage, stored,
    )
  }

  remove(passage: number): void {
    this.#index.execute('DELETE FROM heed_recall_words WHERE key = ?', passage)
  }

  clear(): void {
    this.#index.execute('DELETE FROM heed_recall_words')
  }

  counts(tokens: readonly string[]): number[] {
    if (tokens.length === 0) return []
    const rows = this.#index.all<{ doc: number }>(
      `SELECT (SELECT count(*) FROM heed_recall_words w WHERE w.words @@ q.query::tsquery) AS doc
       FROM heed_each(?) WITH ORDINALITY AS q (query, nth) ORDER BY q.nth`,
      JSON.stringify(tokens.map((token) => written(token, textSearchForm))),
    )
    return tokens.map((_, at) => rows[at]?.doc ?? 0)
  }

  find(matches: readonly Match[], limit: number): number[][] {
    if (matches.length === 0) return []
    // The sum keeps the server from reading all passages of all resources in the order of their keys.
    const rows = this.#index.all<{ keys: string }>(
      `SELECT coalesce((SELECT json_agg(p.key) FROM (
         SELECT w.key FROM heed_recall_words w WHERE w.words @@ q.query::tsquery ORDER BY w.key + 0 LIMIT ?2) p), '[]') AS keys
       FROM heed_each(?1) WITH ORDINALITY AS q (query, nth) ORDER BY q.nth`,
      JSON.stringify(matches.map((match) => written(match, textSearchForm))),
      limit,
    )
    return matches.map((_, at) => JSON.parse(rows[at]?.keys ?? '[]') as number[])
  }
}

interface Form {
  token(token: string): string
  all: string
  any: string
}

const fullTextForm: Form = { token: (token) => `"${token}"`, all: ' AND ', any: ' OR ' }
const textSearchForm: Form = { token: (token) => `'${storable(token).replaceAll(/['\\]/g, '$&$&')}'`, all: ' & ', any: ' | ' }

function written(match: Match, form: Form): string {
  if (typeof match === 'string') return form.token(match)
  const isAll = 'all' in match
  const parts = (isAll ? match.all : match.any).map((part) => (typeof part === 'string' ? form.token(part) : `(${written(part, form)})`))
  return parts.join(isAll ? form.all : form.any)
}

/** A term that was cut may end with half of a surrogate pair, which PostgreSQL can't store. */
function storable(token: string): string {
  return token.toWellFormed()
}
