import { changeNumber } from '../sql/notifications/sql.ts'
import { entryMatches, metadataMatches } from '../sql/queries.ts'
import { sql, threadColumns } from '../sql/sql.ts'
import { texts } from '../sql/texts.ts'
import { rewritten } from './rewritten.ts'
import type { StatementTypes } from './wire/batch.ts'

/** The statements of `store/sql` are in SQLite's dialect; this class knows them in that of PostgreSQL. */
export class Dialect {
  /** The schema of all tables, quoted. No statement relies on `search_path`, which poolers share between clients. */
  readonly schema: string
  /** The types of the values of statements that were executed. */
  readonly types: StatementTypes = new Map()
  readonly #known = new Map<string, string>()
  #epochFloor = 0

  constructor(schemaName: string) {
    this.schema = quoteName(schemaName)
    this.#addRewritten()
  }

  #addRewritten(): void {
    for (const [domain, named] of Object.entries(rewritten)) {
      const originals: Readonly<Record<string, string>> = texts[domain as keyof typeof texts]
      for (const [name, text] of Object.entries(named)) {
        const original = originals[name]
        if (original === undefined) throw new Error(`${domain}.${name} is rewritten, and is no statement of store/sql`)
        this.#known.set(original, this.place(text))
      }
    }
  }

  /** From here on no thread has a lower epoch, whatever its row says: lower ones were granted on an earlier timeline. */
  raiseEpochs(floor: number): void {
    this.#epochFloor = floor
    this.#known.clear()
    this.#addRewritten()
  }

  /** The statement with epochs that are not below the floor. */
  #floored(text: string): string {
    const floor = this.#epochFloor
    if (floor === 0) return text
    if (text === sql.epochFloor) return `SELECT greatest(floor, ${floor}) AS floor FROM heed_epochs WHERE id = 1`
    if (text === sql.life) return `SELECT greatest((${text}), ${floor}) AS life`
    return text.replace(threadColumns, () => threadColumns.replace(/\bepoch\b/, `greatest(epoch, ${floor}) AS epoch`))
  }

  /** The statement in PostgreSQL's dialect. */
  translate(text: string): string {
    let translated = this.#known.get(text)
    if (translated === undefined) {
      translated = this.place(numbered(mechanical(this.#floored(text))))
      this.#known.set(text, translated)
    }
    return translated
  }

  /** The same for a read whose first value is the key of a thread, with the id of the thread in its place. */
  translateAhead(text: string): string {
    const name = `ahead ${text}`
    let translated = this.#known.get(name)
    if (translated === undefined) {
      const key = `(SELECT of_id.key FROM ${this.schema}.heed_threads of_id WHERE of_id.id = $1)`
      translated = this.translate(text).replaceAll(/\$1(?!\d)/g, () => key)
      this.#known.set(name, translated)
    }
    return translated
  }

  /** Names the schema of tables and functions. */
  place(text: string): string {
    return text
      .replaceAll(/\b(FROM|JOIN|INTO|UPDATE|TABLE|ON|SEQUENCE|DROP INDEX|EXISTS)(\s+)(heed_\w+)(?![\w.(])/g, (_, word, space, name) =>
        `${word}${space}${this.schema}.${name}`)
      .replaceAll(/(?<![\w.])(heed_\w+)\(/g, (_, name) => `${this.schema}.${name}(`)
  }
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** What differs everywhere in the same way. */
function mechanical(text: string): string {
  return text
    .replaceAll(metadataMatches, 'heed_metadata_matches(heed_threads.metadata, ?)')
    .replaceAll(entryMatches, 'm.name = ? AND m.value = heed_entry(?)')
    // A counter of all resources would be a lock that every writer waits for: each resource has its own.
    .replaceAll(changeNumber, /^\s*INSERT/.test(text) ? 'heed_change(?3)' : 'heed_change(resource_id)')
    // SQLite takes the order of a cross join as an order to itself.
    .replaceAll(/\bCROSS JOIN (\w+(?: (?!ON\b)\w+)?) ON\b/g, 'JOIN $1 ON')
    .replaceAll(/\s+INDEXED BY \w+/g, '')
    .replaceAll('json_group_array(', 'json_agg(')
    .replaceAll(/CAST\(group_concat\((\w+), ''\) AS BLOB\)/g, "string_agg($1, ''::bytea)")
    .replaceAll(/length\(CAST\(([\w.]+) AS BLOB\)\)/g, 'octet_length($1)')
    // Numbers are passed as a list in JSON.
    .replaceAll(/IN \(SELECT CAST\(value AS BIGINT\) FROM json_each\((\?\d*)\)\)/g, `= ANY (translate($1, '[]', '{}')::bigint[])`)
    .replaceAll(/SELECT value FROM json_each\(/g, 'SELECT heed_each(')
    .replaceAll(`json_extract(metadata, '$.clone.sourceThreadId')`, 'heed_clone_of(metadata)')
    .replaceAll(/(\w+\.\w+) GLOB \?/g, 'heed_glob($1, ?)')
    // The type of a value is that of what it is compared with first.
    .replaceAll(/(\?\d+) IS NULL OR ([\w.]+) = \1/g, '$2 = $1 OR $1 IS NULL')
    .replaceAll(/\bWHEN (\?\d+) IS NULL\b/g, 'WHEN $1::bigint IS NULL')
    // Names without quotes would be lower case.
    .replaceAll(/\bAS ([a-z]+[A-Z]\w*)/g, 'AS "$1"')
}

/** `?` and `?1` as `$1`: a plain one has the number after the highest before it. */
function numbered(text: string): string {
  let highest = 0
  return text.replaceAll(/'[^']*'|\?(\d*)/g, (found, number: string | undefined) => {
    if (number === undefined) return found
    const at = number === '' ? highest + 1 : Number(number)
    highest = Math.max(highest, at)
    return `$${at}`
  })
}
