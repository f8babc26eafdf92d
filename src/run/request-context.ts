/** The same fields as a mapped type, so that an interface can be assigned to a record. */
type All<Values> = { [Key in keyof Values]: Values[Key] }

/**
 * Values of one request that instructions, models, tools and processors may depend on: the user's plan, a locale, a database handle.
 * They are not sent to the model. Values that are JSON are stored with a run on a thread, so that it continues with them after a restart;
 * a value that must not be stored, such as a secret, can be a function that returns it.
 */
export class RequestContext<Values extends object = Record<string, unknown>> {
  readonly #values: Map<string, unknown>

  constructor(entries?: Iterable<readonly [string, unknown]>)
  constructor(values?: Values)
  constructor(values?: Iterable<readonly [string, unknown]> | Values) {
    this.#values = new Map(values === undefined ? [] : isIterable(values) ? values : Object.entries(values))
  }

  get<Key extends keyof Values & string>(key: Key): Values[Key]
  get(key: string): unknown
  get(key: string): unknown {
    return this.#values.get(key)
  }

  set<Key extends keyof Values & string>(key: Key, value: Values[Key]): void {
    this.#values.set(key, value)
  }

  has(key: string): boolean {
    return this.#values.has(key)
  }

  delete(key: string): boolean {
    return this.#values.delete(key)
  }

  keys(): IterableIterator<string> {
    return this.#values.keys()
  }

  entries(): IterableIterator<[string, unknown]> {
    return this.#values.entries()
  }

  /** All values as one object: what `requestContextSchema` validates. */
  get all(): All<Values> {
    return Object.fromEntries(this.#values) as All<Values>
  }

  /** The same, so that a client sends the values. */
  toJSON(): All<Values> {
    return this.all
  }
}

function isIterable(value: object): value is Iterable<readonly [string, unknown]> {
  return Symbol.iterator in value
}
