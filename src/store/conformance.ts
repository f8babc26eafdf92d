import { acceptanceCases } from './conformance/acceptance.ts'
import type { StoreCase } from './conformance/case.ts'
import { conversationCases } from './conformance/conversations.ts'
import { drainingCases } from './conformance/draining.ts'
import { endingCases } from './conformance/endings.ts'
import { givenIdCases } from './conformance/given-ids.ts'
import { laneCases } from './conformance/lanes.ts'
import { leaseCases } from './conformance/leases.ts'
import { messageCases } from './conformance/messages.ts'
import { nestingCases } from './conformance/nesting.ts'
import { orderCases } from './conformance/order.ts'
import { queueCases } from './conformance/queue.ts'
import { recoveryCases } from './conformance/recovery.ts'
import { suspensionCases } from './conformance/suspension.ts'
import { tenancyCases } from './conformance/tenancy.ts'
import { threadCases } from './conformance/threads.ts'
import { titleCases } from './conformance/titles.ts'
import { windowCases } from './conformance/window.ts'
import { workingMemoryCases } from './conformance/working-memory.ts'

export type { StoreCase, StoreHarness } from './conformance/case.ts'

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
