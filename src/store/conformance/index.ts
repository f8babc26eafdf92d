import type { StoreCase, StoreWriterCase } from './fixture.ts'
import { acceptanceCases } from './runs/acceptance.ts'
import { drainingCases } from './runs/draining.ts'
import { editCases } from './runs/edits.ts'
import { endingCases } from './runs/endings.ts'
import { leaseCases } from './runs/leases.ts'
import { nestingCases } from './runs/nesting.ts'
import { orderCases } from './runs/order.ts'
import { recoveryCases } from './runs/recovery.ts'
import { scoreCases } from './runs/scores.ts'
import { stepCases } from './runs/steps.ts'
import { suspensionCases } from './runs/suspension.ts'
import { workflowCases } from './runs/workflows.ts'
import { conversationCases } from './threads/conversations.ts'
import { laneCases } from './threads/lanes.ts'
import { messageCases } from './threads/messages.ts'
import { threadCases } from './threads/threads.ts'
import { usageCases, usageWriterCases } from './threads/usage.ts'
import { windowCases } from './threads/window.ts'
import { workingMemoryCases } from './threads/working-memory.ts'
import { acceptanceWriterCases } from './writers/acceptance.ts'
import { runWriterCases } from './writers/runs.ts'
import { threadWriterCases } from './writers/threads.ts'

export type { StoreCase, StoreHarness } from './fixture.ts'

/**
 * What every `ThreadStore` guarantees, as cases for any test runner:
 *
 *     for (const { name, run } of storeConformance) it(name, () => run(harness))
 */
export const storeConformance: StoreCase[] = [
  ...acceptanceCases,
  ...leaseCases,
  ...drainingCases,
  ...recoveryCases,
  ...suspensionCases,
  ...nestingCases,
  ...endingCases,
  ...stepCases,
  ...workflowCases,
  ...scoreCases,
  ...editCases,
  ...laneCases,
  ...orderCases,
  ...windowCases,
  ...threadCases,
  ...messageCases,
  ...workingMemoryCases,
  ...conversationCases,
  ...usageCases,
]

/**
 * What every `ThreadStore` guarantees when two connections write at the same time, as cases for any test runner. They need a harness
 * with `another`:
 *
 *     for (const { name, run } of storeWriterConformance) it(name, () => run(harness))
 */
export const storeWriterConformance: StoreWriterCase[] = [
  ...acceptanceWriterCases,
  ...runWriterCases,
  ...threadWriterCases,
  ...usageWriterCases,
]
