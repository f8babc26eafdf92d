const maxLength = 256
const maxUnbounded = 8

const escape = String.raw`\\(?:u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|k<[^>]*>|c[a-zA-Z]|.)`
const characterClass = String.raw`\[(?:\\.|[^\]])*\]`
const opening = String.raw`\(\?(?:[:=!]|<[=!]|<[^>]*>)`
const quantifier = String.raw`\{\d+(?:,\d*)?\}\??|[*+?]\??`

/** A part of a pattern that matches one character, as a pattern of its own. */
type Letter = RegExp

interface Sequence {
  letters: Letter[]
  /** Whether the first part is one character without a quantifier. */
  startsPlain: boolean
  hasUnbounded: boolean
  hasGroup: boolean
}

interface Group {
  branches: Sequence[]
}

/**
 * What is wrong with a pattern of a caller outside this process, or undefined. A pattern is accepted only where a text has few ways to
 * match it: what is repeated without limit begins with a character that nothing else in it matches.
 */
export function checkOutsidePattern(pattern: string): string | undefined {
  if (pattern.length > maxLength) return `is longer than ${maxLength} characters`
  try {
    void new RegExp(pattern, 'u')
  } catch {
    return 'is not a regular expression'
  }
  return new PatternReader(pattern).problem()
}

class PatternReader {
  readonly #tokens: readonly string[]
  #unbounded = 0

  constructor(pattern: string) {
    this.#tokens = pattern.match(new RegExp(`${escape}|${characterClass}|${opening}|${quantifier}|.`, 'gsu')) ?? []
  }

  problem(): string | undefined {
    const groups: Group[] = [{ branches: [newSequence()] }]
    const current = () => groups.at(-1)!.branches.at(-1)!
    let last: Letter | Group | undefined
    for (const token of this.#tokens) {
      if (/^\\[1-9k]/.test(token)) return 'has a backreference'
      if (/^\(\?(?:[=!]|<[=!])/.test(token)) return 'looks ahead or behind'
      if (/^(?:[*+?]|\{)/.test(token) && token !== '{') {
        const problem = this.#quantify(current(), last, isUnbounded(token))
        if (problem !== undefined) return problem
        last = undefined
      } else if (token.startsWith('(')) groups.push({ branches: [newSequence()] })
      else if (token === '|') groups.at(-1)!.branches.push(newSequence())
      else if (token === ')') {
        last = groups.pop()!
        absorb(current(), last)
      } else if (token !== '^' && token !== '$' && !/^\\[bB]$/.test(token)) {
        const letter = new RegExp(`^(?:${token})$`, 'su')
        const sequence = current()
        if (sequence.letters.length === 0 && !sequence.hasGroup) sequence.startsPlain = true
        sequence.letters.push(letter)
        last = letter
      }
    }
    return undefined
  }

  #quantify(sequence: Sequence, what: Letter | Group | undefined, unbounded: boolean): string | undefined {
    // The first character of the sequence is no longer a fixed one.
    if (sequence.letters.length === 1 && sequence.letters[0] === what) sequence.startsPlain = false
    if (!unbounded) return undefined
    if (++this.#unbounded > maxUnbounded) return `has more than ${maxUnbounded} repetitions without a limit`
    sequence.hasUnbounded = true
    return what !== undefined && 'branches' in what && !isUnambiguous(what)
      ? 'repeats without limit what may match a text in several ways'
      : undefined
  }
}

/** Whether a text has one way to be a repetition of the group. */
function isUnambiguous({ branches }: Group): boolean {
  const firsts = branches.map(({ letters, startsPlain }) => (startsPlain ? letters[0] : undefined))
  if (firsts.some((first) => first === undefined) || branches.some(({ hasGroup }) => hasGroup)) return false
  if (branches.length === 1 && !branches[0]!.hasUnbounded) return true
  const all = branches.flatMap(({ letters }) => letters)
  return firsts.every((first) => all.every((letter) => letter === first || isDisjoint(first!, letter)))
}

const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))
/** Stand for all other characters: two letters, a digit, a space and a symbol of other scripts. */
const others = ['é', 'Ж', '٣', '\u2003', '😀']

function isDisjoint(one: Letter, other: Letter): boolean {
  return [...ascii, ...others].every((letter) => !one.test(letter) || !other.test(letter))
}

function newSequence(): Sequence {
  return { letters: [], startsPlain: false, hasUnbounded: false, hasGroup: false }
}

function absorb(sequence: Sequence, { branches }: Group): void {
  sequence.hasGroup = true
  for (const { letters, hasUnbounded } of branches) {
    sequence.letters.push(...letters)
    sequence.hasUnbounded ||= hasUnbounded
  }
}

function isUnbounded(token: string): boolean {
  return /^(?:[*+]|\{\d+,\})/.test(token)
}
