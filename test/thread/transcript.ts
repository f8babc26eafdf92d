import type { Chunk, Message, ThreadSnapshot } from '../../src/index.ts'

/** What history holds, one line for each signal, text, call and error. */
export function kept(messages: readonly Message[]): string[] {
  return messages.flatMap(({ id, role, content }) => {
    if (role === 'signal') return [`signal ${id}`]
    return content.parts.flatMap((part) => {
      if (part.type === 'text') return part.text === '' ? [] : [`text ${part.text}`]
      if (part.type === 'reasoning') return [`thought ${part.reasoning}`]
      if (part.type === 'error') return [`error ${part.error.message}`]
      if (part.type !== 'tool-invocation') return []
      const { toolCallId, state, result, errorText } = part.toolInvocation
      return [`call ${toolCallId} ${state} ${JSON.stringify(result ?? errorText ?? null)}`]
    })
  })
}

/** What a watcher knows after these chunks, in the same lines: what a simple client would show. */
export function told(chunks: readonly Chunk[]): string[] {
  let lines: Line[] = []
  for (const chunk of chunks) {
    if (chunk.type === 'data-thread-snapshot' && 'data' in chunk) {
      lines = kept((chunk.data as ThreadSnapshot).messages).map(fromHistory)
    } else if ((chunk.type === 'data-user-message' || chunk.type === 'data-signal') && 'data' in chunk) {
      lines.push({ text: `signal ${(chunk.data as { id: string }).id}` })
    } else if ('payload' in chunk) {
      lines = withChunk(lines, chunk)
    }
  }
  return lines.map(({ text }) => text)
}

interface Line {
  text: string
  /** The block that still grows, or the call that has no result. */
  open?: string
}

function fromHistory(text: string): Line {
  const call = /^call (\S+) call /.exec(text)
  return { text, ...(call ? { open: `call ${call[1]}` } : {}) }
}

function withChunk(lines: Line[], chunk: Extract<Chunk, { payload: unknown }>): Line[] {
  switch (chunk.type) {
    case 'text-delta':
      return grown(lines, `text ${chunk.runId} ${chunk.payload.id}`, 'text ', chunk.payload.text)
    case 'reasoning-delta':
      return grown(lines, `thought ${chunk.runId} ${chunk.payload.id}`, 'thought ', chunk.payload.text)
    case 'text-end':
    case 'reasoning-end':
      return lines.map(({ text, open }) => (open?.endsWith(` ${chunk.runId} ${chunk.payload.id}`) ? { text } : { text, ...(open ? { open } : {}) }))
    case 'tool-call':
      return [...lines, { text: `call ${chunk.payload.toolCallId} call null`, open: `call ${chunk.payload.toolCallId}` }]
    case 'tool-result':
      return chunk.payload.preliminary ? lines : settled(lines, chunk.payload.toolCallId, 'result', chunk.payload.result)
    case 'tool-error':
      return settled(lines, chunk.payload.toolCallId, 'output-error', chunk.payload.error.message)
    case 'tool-output-denied':
      return settled(lines, chunk.payload.toolCallId, 'output-denied', null)
    case 'error':
      return [...lines, { text: `error ${chunk.payload.error.message}` }]
    case 'abort':
      // A call that waited will have no result any more.
      return lines.map(({ text }) => ({ text }))
    case 'step-finish': {
      // Calls of a step that was cut are never made.
      const made = new Set(chunk.payload.output.toolCalls.map(({ toolCallId }) => `call ${toolCallId}`))
      return lines.filter(({ open }) => !open?.startsWith('call ') || made.has(open)).map(({ text }) => ({ text }))
    }
    default:
      return lines
  }
}

function grown(lines: Line[], open: string, prefix: string, text: string): Line[] {
  // A note that was kept meanwhile may stand after a block that still grows.
  const index = lines.findLastIndex((line) => line.open === open)
  const line = lines[index]
  return line ? lines.with(index, { text: line.text + text, open }) : [...lines, { text: prefix + text, open }]
}

function settled(lines: Line[], toolCallId: string, state: string, result: unknown): Line[] {
  const text = `call ${toolCallId} ${state} ${JSON.stringify(result)}`
  const index = lines.findLastIndex((line) => line.text.startsWith(`call ${toolCallId} `))
  const line = lines[index]
  // A snapshot that was read after the result was stored has it before its chunk arrives.
  if (line?.open !== undefined || line?.text === text) return lines.with(index, { text })
  throw new Error(`The result of ${toolCallId} (${state}) follows no open call: ${lines.map((other) => other.text).join(' | ')}`)
}
