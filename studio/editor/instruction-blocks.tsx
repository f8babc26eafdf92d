import { useState } from 'react'
import type { InstructionBlock } from 'heed/client'
import { rulesOf } from './versions.ts'

const kinds = { text: 'Text', prompt_block: 'Text for some requests', prompt_block_ref: 'Prompt block' } as const

/** The blocks of instructions, in their order. */
export function InstructionBlocks({
  blocks,
  known,
  onChange,
}: {
  blocks: readonly InstructionBlock[]
  /** The ids of prompt blocks. */
  known: readonly string[]
  onChange: (blocks: InstructionBlock[]) => void
}) {
  const replace = (at: number, ...by: InstructionBlock[]) => onChange(blocks.toSpliced(at, 1, ...by))
  const [moves, setMoves] = useState(0)
  const raise = (at: number, block: InstructionBlock) => {
    setMoves(moves + 1)
    onChange(blocks.toSpliced(at, 1).toSpliced(at - 1, 0, block))
  }
  return (
    <fieldset className="tool-fields">
      <legend>Instructions, in blocks</legend>
      {blocks.map((block, at) => (
        // A block has no name: after each change of places, the fields are made anew.
        <div key={`${at} ${block.type} ${blocks.length} ${moves}`} className="tool-field">
          <div className="actions">
            <select
              aria-label={`Kind of block ${at + 1}`}
              value={block.type}
              onChange={(event) => replace(at, changed(block, event.target.value as InstructionBlock['type'], known))}
            >
              {Object.entries(kinds).map(([type, name]) => (
                <option key={type} value={type} disabled={type === 'prompt_block_ref' && known.length === 0}>
                  {name}
                </option>
              ))}
            </select>
            <button type="button" disabled={at === 0} onClick={() => raise(at, block)} aria-label={`Move block ${at + 1} up`}>
              Up
            </button>
            <button type="button" onClick={() => replace(at)} aria-label={`Remove block ${at + 1}`}>
              Remove
            </button>
          </div>
          <BlockFields block={block} name={`block ${at + 1}`} known={known} onChange={(next) => replace(at, next)} />
        </div>
      ))}
      <div className="actions">
        <button type="button" onClick={() => onChange([...blocks, { type: 'text', content: '' }])}>
          Add a block
        </button>
        <span className="meta">
          {"{{user.plan || 'free'}}"} is replaced by a value of the request context that code declares in requestContextSchema.
        </span>
      </div>
    </fieldset>
  )
}

function BlockFields({
  block,
  name,
  known,
  onChange,
}: {
  block: InstructionBlock
  name: string
  known: readonly string[]
  onChange: (block: InstructionBlock) => void
}) {
  if (block.type === 'prompt_block_ref') {
    const ids = known.includes(block.id) ? known : [block.id, ...known]
    return (
      <select aria-label={`Prompt block of ${name}`} value={block.id} onChange={(event) => onChange({ ...block, id: event.target.value })}>
        {ids.map((id) => (
          <option key={id}>{id}</option>
        ))}
      </select>
    )
  }
  return (
    <>
      <textarea
        rows={4}
        aria-label={`Text of ${name}`}
        value={block.content}
        spellCheck
        onChange={(event) => onChange({ ...block, content: event.target.value })}
      />
      {block.type === 'prompt_block' && (
        <RulesField
          name={`Rules of ${name}`}
          rules={block.rules}
          onChange={({ rules }) => onChange({ type: block.type, content: block.content, ...(rules && { rules }) })}
        />
      )}
    </>
  )
}

type Rules = (InstructionBlock & { type: 'prompt_block' })['rules']

/** Rules as JSON. What is typed is kept while it is none. */
export function RulesField({ name, rules, onChange }: { name: string; rules: Rules; onChange: (change: { rules?: Rules }) => void }) {
  const [text, setText] = useState(() => (rules ? JSON.stringify(rules) : ''))
  const [problem, setProblem] = useState<string>()
  return (
    <>
      <textarea
        rows={2}
        className="mono"
        aria-label={name}
        aria-invalid={problem !== undefined}
        value={text}
        placeholder='{"operator":"AND","conditions":[{"field":"plan","operator":"equals","value":"pro"}]}'
        onChange={(event) => {
          setText(event.target.value)
          const read = rulesOf(event.target.value)
          setProblem(read.problem)
          if (read.problem === undefined) onChange(read.rules ? { rules: read.rules } : {})
        }}
      />
      {problem !== undefined && <p className="problem">{problem}</p>}
    </>
  )
}

/** The block as another kind: its text stays. */
function changed(block: InstructionBlock, type: InstructionBlock['type'], known: readonly string[]): InstructionBlock {
  const content = block.type === 'prompt_block_ref' ? '' : block.content
  return type === 'prompt_block_ref' ? { type, id: known[0] ?? '' } : { type, content }
}
