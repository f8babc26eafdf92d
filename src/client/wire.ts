/** A type as it arrives in JSON: dates are strings, functions are omitted. */
export type OverWire<T> = T extends Date ? string
  : T extends (...args: never) => unknown ? never
  : T extends ReadonlyArray<infer Item> ? Array<OverWire<Item>>
  : T extends object ? { [Key in keyof T as T[Key] extends (...args: never) => unknown ? never : Key]: OverWire<T[Key]> }
  : T

export interface ThreadScope {
  threadId: string
  resourceId?: string
}
