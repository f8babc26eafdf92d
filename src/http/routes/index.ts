import { editor } from '../editor-routes.ts'
import { promptBlocks } from '../prompt-block-routes.ts'
import type { Route } from '../route.ts'
import { agents } from './agents.ts'
import { approvals } from './approvals.ts'
import { chat } from './chat.ts'
import { existingScores } from './existing-clients/scores.ts'
import { storedAgents } from './existing-clients/stored-agents.ts'
import { existingWorkflowRuns } from './existing-clients/workflow-runs.ts'
import { generate } from './generate.ts'
import { memory } from './memory.ts'
import { messages } from './messages.ts'
import { notifications } from './notifications.ts'
import { operations, type Operations } from './operations.ts'
import { replies } from './channels/replies.ts'
import { runs } from './runs.ts'
import { schedules } from './schedules.ts'
import { sends } from './sends.ts'
import { subscriptions } from './subscriptions.ts'
import { threadState } from './thread-state.ts'
import { threads } from './threads.ts'
import { scores } from './scores.ts'
import { watches } from './channels/watches.ts'
import { webhooks } from './channels/webhooks.ts'
import { voice } from './voice.ts'
import { workflows } from './workflows.ts'

/** Every route of the server. */
export function allRoutes(sources: Operations): Route[] {
  return [
    ...agents,
    ...editor,
    ...storedAgents,
    ...promptBlocks,
    ...sends,
    ...subscriptions,
    ...threadState,
    ...notifications,
    ...schedules,
    ...watches,
    ...replies,
    ...approvals,
    ...runs,
    ...generate,
    ...chat,
    ...voice,
    ...threads,
    ...messages,
    ...memory,
    ...workflows,
    ...existingWorkflowRuns,
    ...scores,
    ...existingScores,
    ...webhooks,
    ...operations(sources),
  ]
}
