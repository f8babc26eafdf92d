/** A copy that later changes to the original do not reach. What is no plain data, such as a signal, is kept as it is. */
export function snapshot<Value>(value: Value): Value
export function snapshot(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: unknown) => snapshot(item))
  if (value instanceof Uint8Array) return value.slice()
  if (value instanceof URL) return new URL(value)
  if (value instanceof Date) return new Date(value)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, snapshot(item)]))
}

/** The characters a model reads: texts, tool inputs and tool outputs. Files count nothing. */
export function promptCharacters(prompt: ReadonlyArray<{ content: string | ReadonlyArray<object> }>): number {
  return prompt.reduce((sum, { content }) => sum + contentCharacters(content), 0)
}

function contentCharacters(content: string | ReadonlyArray<object>): number {
  if (typeof content === 'string') return content.length
  return content.reduce((sum, part) => sum + partCharacters(part), 0)
}

function partCharacters(part: object): number {
  if ('text' in part && typeof part.text === 'string') return part.text.length
  if ('input' in part) return JSON.stringify(part.input)?.length ?? 0
  if ('output' in part) return JSON.stringify(part.output)?.length ?? 0
  return 0
}
