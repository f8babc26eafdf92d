import type { Processor } from './processor.ts'

/** A processor in errors and logs: its id, and its name where it has one. */
export function called({ id, name }: Processor): string {
  return name === undefined || name === id ? `'${id}'` : `'${id}' (${name})`
}
