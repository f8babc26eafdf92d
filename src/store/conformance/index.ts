import { acceptanceCases } from './runs/acceptance.ts'
import type { StoreCase } from './case.ts'
import { conversationCases } from './threads/conversations.ts'
import { drainingCases } from './runs/draining.ts'
import { endingCases } from './runs/endings.ts'
import { givenIdCases } from './runs/caller-ids.ts'
import { laneCases } from './threads/lanes.ts'
import { leaseCases } from './runs/leases.ts'
import { messageCases } from './threads/messages.ts'
import { nestingCases } from './runs/nesting.ts'
import { orderCases } from './runs/order.ts'
import { queueCases } from './runs/queue.ts'
import { recoveryCases } from './runs/recovery.ts'
import { suspensionCases } from './runs/suspension.ts'
import { tenancyCases } from './threads/tenancy.ts'
import { threadCases } from './threads/threads.ts'
import { titleCases } from './threads/titles.ts'
import { windowCases } from './threads/window.ts'
import { workingMemoryCases } from './threads/working-memory.ts'

export type { StoreCase, StoreHarness } from './case.ts'

/**
 * What every `ThreadStore` keeps, as cases for any test runner:
 *
 *     for (const { name, run } of storeConformance) it(name, () => run(harness))
 */
export const storeConformance: StoreCase[] = [
  ...acceptanceCases,
  ...givenIdCases,
  ...leaseCases,
  ...drainingCases,
  ...queueCases,
  ...recoveryCases,
  ...suspensionCases,
  ...nestingCases,
  ...endingCases,
  ...tenancyCases,
  ...laneCases,
  ...orderCases,
  ...windowCases,
  ...threadCases,
  ...messageCases,
  ...workingMemoryCases,
  ...titleCases,
  ...conversationCases,
]
