import type { SqlValue } from '../../sql/statements.ts'

/** A statement in PostgreSQL's dialect. */
export interface PlacedStatement {
  text: string
  values: readonly SqlValue[]
}
