import { HeedError } from '../../base/errors.ts'
import { ProcessorPipeline } from '../../processors/pipeline.ts'
import type { Processor } from '../../processors/processor.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import type { RequestContext } from '../request-context.ts'
import { emptyToolSet } from '../tools/tool-set.ts'
import type { RunHost, RunSetup } from './run-contract.ts'
import { Run } from './run.ts'

/** Whose texts are checked, and with what. */
type TextsOwner = Pick<RunSetup, 'agent' | 'clock' | 'logger' | 'newId'> & {
  threadId?: string | undefined
  resourceId?: string | undefined
  requestContext: RequestContext
}

/** Nothing is stored or published: signals that a processor sends are dropped. */
const noHost: RunHost = {
  lanes: [],
  emit() {},
  commit: () => Promise.resolve({ entered: [], ended: true }),
  reviseInput: () => Promise.resolve(),
  history: () => Promise.resolve([]),
  laneRows: () => Promise.resolve({ rows: [], left: 0 }),
}

/**
 * The texts as `processInput` of these processors leaves them, called outside of a run. Rejects with `tripwire` where a processor rejects
 * them.
 */
export async function checkTexts(input: readonly Processor[], texts: readonly string[], owner: TextsOwner): Promise<readonly string[]> {
  const { agent: { id, name }, threadId, resourceId, requestContext, clock, logger, newId } = owner
  const processors = new ProcessorPipeline(input, [], 0)
  if (!processors.readsInput || texts.length === 0) return texts
  const run = new Run(
    {
      id: newId(), agent: { id, name }, requestContext, options: {}, models: [], system: [], tools: emptyToolSet, structured: undefined,
      processors, context: [], transform: undefined, reservedTags: [], clock, logger, newId, rows: [], inputCount: 0, stepsDone: 0,
      ...(threadId === undefined ? {} : { threadId }), ...(resourceId === undefined ? {} : { resourceId }),
    },
    noHost,
  )
  try {
    return await processors.texts(run, texts, 'stored')
  } catch (error) {
    throw error instanceof TripwireAbort ? rejection(error) : error
  }
}

function rejection({ tripwire: { processorId, reason, metadata } }: TripwireAbort): HeedError {
  const details = { processorId, reason, ...(metadata === undefined ? {} : { metadata }) }
  return new HeedError('tripwire', `Processor '${processorId}' rejected the text: ${reason}`, { details })
}
