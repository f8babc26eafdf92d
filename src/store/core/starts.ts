import type { RowRecord } from './records.ts'

/** Whether a message begins with this row. Those that follow add to it: later steps, results of tools, context. */
export function startsMessage(row: Pick<RowRecord, 'counted' | 'role'>): boolean {
  return row.counted > 0 || row.role === 'signal' || row.role === 'system'
}
