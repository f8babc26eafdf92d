/** A piece of a page, as the build gives it to the index. */
export interface Passage {
  page: string
  title: string
  id: string
  heading: string
  text: string
  /** What its score is multiplied with; 1 by default. */
  weight?: number
}

/** The index that a page loads: texts and numbers alone. */
export interface SearchIndex {
  passages: Array<[page: string, title: string, id: string, heading: string, text: string, weight: number]>
  lengths: number[]
  /** For each term the passages that have it, each with its count: `[passage, count, passage, count …]`. */
  terms: Record<string, number[]>
}

export interface Found {
  page: string
  title: string
  id: string
  heading: string
  text: string
  score: number
}

export function termsOf(text: string): string[]
export function indexOf(passages: readonly Passage[]): SearchIndex
export function search(index: SearchIndex, query: string, limit?: number): Found[]
