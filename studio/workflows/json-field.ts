/** The value of a field in which JSON is typed: undefined where it is empty. Throws an error that names the field. */
export function jsonOf(name: string, text: string): unknown {
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new Error(`The ${name} must be JSON: a text needs quotation marks.`, { cause: error })
  }
}
