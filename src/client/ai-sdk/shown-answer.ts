import type { UIPart, UIToolPart } from '../../message/ui/ui-message.ts'
import type { WaitingForData } from './data-types.ts'
import { chunksOfPart, question, type UIChunk } from './ui-chunks.ts'

/** A part of the answer as the page has it. What is no text is known by a key. */
type Piece = { kind: 'text' | 'reasoning'; id: string; text: string; open: boolean } | { kind: 'other'; key: string }

/** A text that is told again, beside the piece that was shown. */
interface Retold {
  piece: Extract<Piece, { text: string }>
  text: string
}

/**
 * What a stream of the AI SDK has shown of an answer. Such a stream takes nothing back: an answer that is told again from its start, as after its run
 * was taken up by another process, is compared with what is there, and only what is new goes on.
 */
export class ShownAnswer {
  readonly #pieces: Piece[] = []
  /** Of calls: what was shown of each, and which of them may be told again. */
  readonly #shown = new Set<string>()
  readonly #calls = new Set<string>()
  /** Up to where the answer is told again. */
  #at = 0
  #started: boolean
  readonly #retold = new Map<string, Retold>()
  /** The names of texts that go on under another name here. */
  readonly #names = new Map<string, string>()
  /** What tools wait for: beside the pieces, since history has nothing of it. */
  readonly #questions = new Map<string, WaitingForData>()

  /** `parts`: what the page has of it already. */
  constructor(parts: readonly UIPart[] = []) {
    this.#started = parts.length > 0
    for (const [index, part] of parts.entries()) {
      for (const chunk of chunksOfPart(part, `shown/${index}`)) {
        if (isQuestion(chunk)) this.#ask(chunk.data)
        else this.#take(chunk)
      }
    }
    this.#at = this.#pieces.length
  }

  /** From here on it is told again from its start. */
  again(): void {
    this.#at = 0
    this.#retold.clear()
    for (const piece of this.#pieces) if (piece.kind === 'other') this.#calls.add(piece.key)
  }

  /** What of it is new. */
  tell(chunk: UIChunk): UIChunk[] {
    if (isQuestion(chunk)) return this.#ask(chunk.data)
    switch (chunk.type) {
      case 'start':
        if (this.#started) return []
        this.#started = true
        return [chunk]
      case 'text-start':
      case 'reasoning-start':
      case 'text-delta':
      case 'reasoning-delta':
      case 'text-end':
      case 'reasoning-end':
        return this.#text(chunk)
      case 'finish-step':
        if (this.#isAgain) return []
        // Texts end with their step.
        for (const piece of this.#pieces) if (piece.kind !== 'other') piece.open = false
        return [chunk]
      case 'finish':
      case 'abort':
      case 'error':
        return [chunk]
      default:
        return this.#other(chunk)
    }
  }

  get #isAgain(): boolean {
    return this.#at < this.#pieces.length
  }

  #ask(data: WaitingForData): UIChunk[] {
    const asked = this.#questions.get(data.toolCallId)
    if (asked && JSON.stringify(asked) === JSON.stringify(data)) return []
    this.#questions.set(data.toolCallId, data)
    return [question(data)]
  }

  /** The run is over: nothing waits any more. */
  settled(): UIChunk[] {
    return Array.from(this.#questions.values(), (asked) => this.#ask({ ...asked, isOver: true })).flat()
  }

  #answered({ toolCallId }: { toolCallId: string }): UIChunk[] {
    const asked = this.#questions.get(toolCallId)
    return asked ? this.#ask({ ...asked, isOver: true }) : []
  }

  #other(chunk: UIChunk): UIChunk[] {
    const key = keyOf(chunk)
    const piece = this.#pieces[this.#at]
    const isNext = piece?.kind === 'other' && piece.key === key
    if (isNext) this.#at++
    // Of a call that is there, each state once, also after other calls; its input is told when it is whole.
    if ('toolCallId' in chunk && this.#calls.has(key)) {
      const isNew = chunk.type !== 'tool-input-start' && chunk.type !== 'tool-input-delta' && !this.#shown.has(stateOf(chunk))
      return isNew ? this.#take(chunk) : []
    }
    if (isNext) return []
    return this.#isAgain ? [...this.#leave(), ...this.#take(chunk)] : this.#take(chunk)
  }

  #text(chunk: Extract<UIChunk, { id: string }> & { type: `${'text' | 'reasoning'}-${'start' | 'delta' | 'end'}` }): UIChunk[] {
    const kind = chunk.type.startsWith('text') ? 'text' : 'reasoning'
    const name = `${kind} ${chunk.id}`
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start') {
      this.#names.delete(name)
      this.#retold.delete(name)
      const piece = this.#pieces[this.#at]
      if (!piece) return this.#take(chunk)
      if (piece.kind !== kind) return [...this.#leave(), ...this.#take(chunk)]
      this.#at++
      this.#retold.set(name, { piece, text: '' })
      return []
    }
    const retold = this.#retold.get(name)
    if (!retold) return this.#take({ ...chunk, id: this.#names.get(name) ?? chunk.id })
    const { piece } = retold
    if ('delta' in chunk) {
      retold.text += chunk.delta
      if (piece.text.startsWith(retold.text)) return []
      this.#retold.delete(name)
      const goesOn = retold.text.startsWith(piece.text)
      if (goesOn && piece.open) {
        this.#names.set(name, piece.id)
        return this.#take({ ...chunk, id: piece.id, delta: retold.text.slice(piece.text.length) })
      }
      // Something else is said now: both are there to be read.
      const said = goesOn ? retold.text.slice(piece.text.length) : retold.text
      return [...this.#leave(), ...this.#take({ type: `${kind}-start`, id: chunk.id }), ...this.#take({ ...chunk, delta: said })]
    }
    this.#retold.delete(name)
    return piece.open ? this.#take({ ...chunk, id: piece.id }) : []
  }

  /** What is told has left what was shown: the rest of that stays as it is. */
  #leave(): UIChunk[] {
    this.#at = this.#pieces.length
    this.#retold.clear()
    return this.#pieces.flatMap((piece) => (piece.kind !== 'other' && piece.open ? this.#take({ type: `${piece.kind}-end`, id: piece.id }) : []))
  }

  /** Shown, and kept in mind. */
  #take(chunk: UIChunk): UIChunk[] {
    const isLive = !this.#isAgain
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start') this.#pieces.push({ kind: chunk.type === 'text-start' ? 'text' : 'reasoning', id: chunk.id, text: '', open: true })
    else if (chunk.type === 'text-delta' || chunk.type === 'reasoning-delta') this.#change(chunk, (piece) => (piece.text += chunk.delta))
    else if (chunk.type === 'text-end' || chunk.type === 'reasoning-end') this.#change(chunk, (piece) => (piece.open = false))
    else {
      const key = keyOf(chunk)
      if ('toolCallId' in chunk) this.#shown.add(stateOf(chunk))
      if (key === stepKey || !this.#pieces.some((piece) => piece.kind === 'other' && piece.key === key)) this.#pieces.push({ kind: 'other', key })
    }
    if (isLive) this.#at = this.#pieces.length
    return 'toolCallId' in chunk && chunk.type.startsWith('tool-output-') ? [chunk, ...this.#answered(chunk)] : [chunk]
  }

  #change({ type, id }: { type: string; id: string }, change: (piece: Retold['piece']) => void): void {
    const kind = type.startsWith('text') ? 'text' : 'reasoning'
    const piece = this.#pieces.findLast((other): other is Retold['piece'] => other.kind === kind && other.id === id)
    if (piece) change(piece)
  }
}

function isQuestion(chunk: UIChunk): chunk is ReturnType<typeof question> {
  return chunk.type === 'data-suspended'
}

const stepKey = 'step'

function keyOf(chunk: UIChunk): string {
  if (chunk.type === 'start-step') return stepKey
  if ('toolCallId' in chunk) return `call ${chunk.toolCallId}`
  if (chunk.type === 'source-url' || chunk.type === 'source-document') return `source ${chunk.sourceId}`
  if (chunk.type === 'file') return `file ${chunk.url}`
  return 'id' in chunk && chunk.id !== undefined ? `${chunk.type} ${chunk.id}` : `${chunk.type} ${JSON.stringify('data' in chunk ? chunk.data : null)}`
}

/** Interim results are each their own. */
function stateOf(chunk: Extract<UIChunk, { toolCallId: string }>): string {
  const interim = 'preliminary' in chunk && chunk.preliminary ? ` ${JSON.stringify(chunk.output)}` : ''
  return `${chunk.type} ${chunk.toolCallId}${interim}`
}

/** Parts of a page's message, as far as they are known here, before the page answered these calls. */
export function partsShown(parts: ReadonlyArray<{ type: string }>, answered: ReadonlyMap<unknown, unknown>): UIPart[] {
  return parts.map((part) => {
    const { toolCallId, state } = part as Partial<UIToolPart>
    if (!answered.has(toolCallId)) return part as UIPart
    return { ...part, state: state === 'approval-responded' ? 'approval-requested' : 'input-available' } as UIPart
  })
}
