// The search of the site: the build makes an index with `indexOf`, and a page ranks its passages with `search`. Plain JavaScript, since pages
// load it as it is; a page that was opened from a disk can't load modules.

const common = new Set('a an and are as at be by can do does for from how i in is it its my of on or that the this to use what when which with you your'.split(' '))

/** Words of a text, in the form in which they are compared. */
export function termsOf(text) {
  const found = []
  for (const [word] of text.matchAll(/[\p{L}\p{N}_]+/gu)) {
    // A name of code is found by its parts too: sendMessage, api_key_missing.
    const parts = word.split(/_|(?<=\p{Ll})(?=\p{Lu})/u).filter((part) => part !== '')
    for (const one of parts.length > 1 ? [word, ...parts] : parts) {
      const term = stem(one.toLowerCase())
      if (!common.has(term)) found.push(term)
    }
  }
  return found
}

function stem(word) {
  if (word.length < 5) return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
  return word.replace(/(?:ies|y)$/, 'i').replace(/(?:ments?|ations?|ings?|ed|es|s|e)$/, '') || word
}

/** Makes the index of passages `{ page, title, id, heading, text, weight? }`. */
export function indexOf(passages) {
  const terms = new Map()
  const lengths = passages.map(({ title, heading, text }, index) => {
    const counts = new Map()
    const add = (from, weight) => {
      for (const term of termsOf(from)) counts.set(term, (counts.get(term) ?? 0) + weight)
    }
    add(text, 1)
    add(heading, 6)
    if (heading !== title) add(title, 2)
    let length = 0
    for (const [term, count] of counts) {
      length += count
      if (!terms.has(term)) terms.set(term, [])
      terms.get(term).push(index, count)
    }
    return length
  })
  return {
    passages: passages.map(({ page, title, id, heading, text, weight = 1 }) => [page, title, id, heading, text.replace(/\s+/g, ' ').slice(0, 180), weight]),
    lengths,
    terms: Object.fromEntries([...terms].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

/** The best passages for a query. The last word may be unfinished. */
export function search(index, query, limit = 10) {
  const wanted = [...new Set(termsOf(query))]
  const last = /[\p{L}\p{N}_]$/u.test(query) ? wanted.at(-1) : undefined
  const average = index.lengths.reduce((sum, length) => sum + length, 0) / index.lengths.length
  const scores = new Map()
  for (const term of wanted) {
    const best = new Map()
    for (const [known, factor] of matching(index.terms, term, term === last)) {
      const postings = index.terms[known]
      const rarity = Math.log(1 + index.passages.length / (postings.length / 2))
      for (let at = 0; at < postings.length; at += 2) {
        const [passage, count] = [postings[at], postings[at + 1]]
        const frequency = (count * 2.2) / (count + 1.2 * (0.4 + 0.6 * (index.lengths[passage] / average)))
        best.set(passage, Math.max(best.get(passage) ?? 0, rarity * frequency * factor))
      }
    }
    for (const [passage, score] of best) {
      const { total = 0, terms = 0 } = scores.get(passage) ?? {}
      scores.set(passage, { total: total + score, terms: terms + 1 })
    }
  }
  return [...scores]
    // A passage with all words is better than one with a rare word alone.
    .map(([passage, { total, terms }]) => ({ passage, score: total * (terms / wanted.length) * index.passages[passage][5] }))
    .sort((a, b) => b.score - a.score || a.passage - b.passage)
    .slice(0, limit)
    .map(({ passage, score }) => {
      const [page, title, id, heading, text] = index.passages[passage]
      return { page, title, id, heading, text, score }
    })
}

function matching(terms, term, isUnfinished) {
  const found = Object.hasOwn(terms, term) ? [[term, 1]] : []
  if (isUnfinished && term.length > 1) for (const known of Object.keys(terms)) if (known !== term && known.startsWith(term)) found.push([known, 0.6 * (term.length / known.length)])
  return found
}
