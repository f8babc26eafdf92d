import type { UIPart, UIToolPart } from '../../message/ui/ui-message.ts'
import { chunksOfPart, question, type UIChunk, type WaitingForData } from './conversion.ts'

/** A part of the answer that was written. Parts other than texts are identified by a key. */
type Piece = { kind: 'text' | 'reasoning'; id: string; text: string; open: boolean } | { kind: 'other'; key: string }

/** A text that is replayed, with the piece that was written before. */
interface ReplayedText {
  piece: Extract<Piece, { text: string }>
  text: string
}

type TextChunk = Extract<UIChunk, { id: string }> & { type: `${'text' | 'reasoning'}-${'start' | 'delta' | 'end'}` }

/**
 * Removes from a stream of the AI SDK the chunks that it already had. Such a stream can't replace what it wrote: an answer that is replayed
 * from its start, as after a takeover of its run, is compared with the pieces that were written, and only new chunks pass.
 */
export class ReplayFilter {
  readonly #pieces: Piece[] = []
  /** The states of calls that were written. */
  readonly #callStates = new Set<string>()
  /** The keys of pieces that were written before the last restart. */
  readonly #replayable = new Set<string>()
  /** The index of the next piece of a replay; the number of pieces if the answer is live. */
  #at = 0
  #started: boolean
  readonly #replayed = new Map<string, ReplayedText>()
  /** The ids with which texts were written before, by their current ones. */
  readonly #writtenIds = new Map<string, string>()
  /** The data that tools wait for. Not pieces, since history doesn't contain them. */
  readonly #questions = new Map<string, WaitingForData>()

  /** `parts`: the parts that the page already has. */
  constructor(parts: readonly UIPart[] = []) {
    this.#started = parts.length > 0
    for (const [index, part] of parts.entries()) {
      for (const chunk of chunksOfPart(part, `shown/${index}`)) {
        if (isQuestion(chunk)) this.#setQuestion(chunk.data)
        else this.#add(chunk)
      }
    }
    this.#at = this.#pieces.length
  }

  /** The page has a part of the answer. */
  get hasWritten(): boolean {
    return this.#pieces.length > 0
  }

  /** From here on, the answer is replayed from its start. */
  restart(): void {
    this.#at = 0
    this.#replayed.clear()
    for (const piece of this.#pieces) if (piece.kind === 'other') this.#replayable.add(piece.key)
  }

  /** The chunks to write for this chunk; none if it repeats what was written. */
  accept(chunk: UIChunk): UIChunk[] {
    if (isQuestion(chunk)) return this.#setQuestion(chunk.data)
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
        return this.#acceptText(chunk)
      case 'finish-step':
        if (this.#isReplay) return []
        // The end of a step ends its texts.
        for (const piece of this.#pieces) if (piece.kind !== 'other') piece.open = false
        return [chunk]
      case 'finish':
      case 'abort':
      case 'error':
        return [chunk]
      default:
        return this.#acceptOther(chunk)
    }
  }

  get #isReplay(): boolean {
    return this.#at < this.#pieces.length
  }

  #setQuestion(data: WaitingForData): UIChunk[] {
    const known = this.#questions.get(data.toolCallId)
    if (known && JSON.stringify(known) === JSON.stringify(data)) return []
    this.#questions.set(data.toolCallId, data)
    return [question(data)]
  }

  /** The run has ended: no tool waits for data any more. */
  endQuestions(): UIChunk[] {
    return Array.from(this.#questions.values(), (data) => this.#setQuestion({ ...data, isOver: true })).flat()
  }

  #endQuestion({ toolCallId }: { toolCallId: string }): UIChunk[] {
    const data = this.#questions.get(toolCallId)
    return data ? this.#setQuestion({ ...data, isOver: true }) : []
  }

  #acceptOther(chunk: UIChunk): UIChunk[] {
    const key = pieceKey(chunk)
    const piece = this.#pieces[this.#at]
    const isNext = piece?.kind === 'other' && piece.key === key
    if (isNext) this.#at++
    // Each state of a call is written once, in any order of calls. A repeated input is only written when it is complete.
    if ('toolCallId' in chunk && this.#replayable.has(key)) {
      const isNew = chunk.type !== 'tool-input-start' && chunk.type !== 'tool-input-delta' && !this.#callStates.has(callState(chunk))
      return isNew ? this.#add(chunk) : []
    }
    if (isNext) return []
    return this.#isReplay ? [...this.#endReplay(), ...this.#add(chunk)] : this.#add(chunk)
  }

  #acceptText(chunk: TextChunk): UIChunk[] {
    const kind = chunk.type.startsWith('text') ? 'text' : 'reasoning'
    const name = `${kind} ${chunk.id}`
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start') {
      this.#writtenIds.delete(name)
      this.#replayed.delete(name)
      const piece = this.#pieces[this.#at]
      if (!piece) return this.#add(chunk)
      if (piece.kind !== kind) return [...this.#endReplay(), ...this.#add(chunk)]
      this.#at++
      this.#replayed.set(name, { piece, text: '' })
      return []
    }
    const replayed = this.#replayed.get(name)
    if (!replayed) return this.#add({ ...chunk, id: this.#writtenIds.get(name) ?? chunk.id })
    const { piece } = replayed
    if ('delta' in chunk) {
      replayed.text += chunk.delta
      if (piece.text.startsWith(replayed.text)) return []
      this.#replayed.delete(name)
      const continues = replayed.text.startsWith(piece.text)
      if (continues && piece.open) {
        this.#writtenIds.set(name, piece.id)
        return this.#add({ ...chunk, id: piece.id, delta: replayed.text.slice(piece.text.length) })
      }
      // The replayed text differs: it becomes a part of its own.
      const rest = continues ? replayed.text.slice(piece.text.length) : replayed.text
      return [...this.#endReplay(), ...this.#add({ type: `${kind}-start`, id: chunk.id }), ...this.#add({ ...chunk, delta: rest })]
    }
    this.#replayed.delete(name)
    return piece.open ? this.#add({ ...chunk, id: piece.id }) : []
  }

  /** The replay differs from what was written: the written rest stays, and its texts end. */
  #endReplay(): UIChunk[] {
    this.#at = this.#pieces.length
    this.#replayed.clear()
    return this.#pieces.flatMap((piece) =>
      piece.kind !== 'other' && piece.open ? this.#add({ type: `${piece.kind}-end`, id: piece.id }) : [],
    )
  }

  /** Records a chunk that is written. */
  #add(chunk: UIChunk): UIChunk[] {
    const isLive = !this.#isReplay
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start')
      this.#pieces.push({ kind: chunk.type === 'text-start' ? 'text' : 'reasoning', id: chunk.id, text: '', open: true })
    else if (chunk.type === 'text-delta' || chunk.type === 'reasoning-delta')
      this.#updateText(chunk, (piece) => (piece.text += chunk.delta))
    else if (chunk.type === 'text-end' || chunk.type === 'reasoning-end') this.#updateText(chunk, (piece) => (piece.open = false))
    else {
      const key = pieceKey(chunk)
      if ('toolCallId' in chunk) this.#callStates.add(callState(chunk))
      if (key === stepKey || !this.#pieces.some((piece) => piece.kind === 'other' && piece.key === key))
        this.#pieces.push({ kind: 'other', key })
    }
    if (isLive) this.#at = this.#pieces.length
    return 'toolCallId' in chunk && chunk.type.startsWith('tool-output-') ? [chunk, ...this.#endQuestion(chunk)] : [chunk]
  }

  #updateText({ type, id }: { type: string; id: string }, change: (piece: ReplayedText['piece']) => void): void {
    const kind = type.startsWith('text') ? 'text' : 'reasoning'
    const piece = this.#pieces.findLast((other): other is ReplayedText['piece'] => other.kind === kind && other.id === id)
    if (piece) change(piece)
  }
}

function isQuestion(chunk: UIChunk): chunk is ReturnType<typeof question> {
  return chunk.type === 'data-suspended'
}

const stepKey = 'step'

function pieceKey(chunk: UIChunk): string {
  if (chunk.type === 'start-step') return stepKey
  if ('toolCallId' in chunk) return `call ${chunk.toolCallId}`
  if (chunk.type === 'source-url' || chunk.type === 'source-document') return `source ${chunk.sourceId}`
  if (chunk.type === 'file') return `file ${chunk.url}`
  return 'id' in chunk && chunk.id !== undefined
    ? `${chunk.type} ${chunk.id}`
    : `${chunk.type} ${JSON.stringify('data' in chunk ? chunk.data : null)}`
}

/** Each preliminary result is a state of its own. */
function callState(chunk: Extract<UIChunk, { toolCallId: string }>): string {
  const interim = 'preliminary' in chunk && chunk.preliminary ? ` ${JSON.stringify(chunk.output)}` : ''
  return `${chunk.type} ${chunk.toolCallId}${interim}`
}

/** The parts of a page's message as they were before the page answered these calls. */
export function partsBeforeAnswers(parts: ReadonlyArray<{ type: string }>, answered: ReadonlyMap<unknown, unknown>): UIPart[] {
  return parts.map((part) => {
    const { toolCallId, state } = part as Partial<UIToolPart>
    if (!answered.has(toolCallId)) return part as UIPart
    return { ...part, state: state === 'approval-responded' ? 'approval-requested' : 'input-available' } as UIPart
  })
}
