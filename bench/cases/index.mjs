import { commits } from './commits/case.mjs'
import { copies } from './copies/case.mjs'
import { fanOut } from './fan-out/case.mjs'
import { httpSend } from './http-send/case.mjs'
import { httpStreams } from './http-streams/case.mjs'
import { idleSend } from './idle-send/case.mjs'
import { importing } from './import/case.mjs'
import { inboxScale } from './inbox-scale/case.mjs'
import { install } from './install/case.mjs'
import { longRun } from './long-run/case.mjs'
import { longThreads } from './long-threads/case.mjs'
import { manyThreads } from './many-threads/case.mjs'
import { memory } from './memory/case.mjs'
import { messageList } from './message-list/case.mjs'
import { notifications } from './notifications/case.mjs'
import { persistedSignals } from './persisted-signals/case.mjs'
import { policies } from './policies/case.mjs'
import { postgresNotifications } from './postgres-notifications/case.mjs'
import { postgresSignals } from './postgres-signals/case.mjs'
import { postgresThreads } from './postgres-threads/case.mjs'
import { processors } from './processors/case.mjs'
import { readAll } from './read-all/case.mjs'
import { recall } from './recall/case.mjs'
import { scorers } from './scorers/case.mjs'
import { threadLists } from './thread-lists/case.mjs'
import { toolRun } from './tool-run/case.mjs'
import { tracing } from './tracing/case.mjs'
import { watches } from './watches/case.mjs'
import { workflowSteps } from './workflow-steps/case.mjs'

/** In the order of the page. A case's folder has its name, and in it one script for each side. */
export const cases = [
  install, importing, toolRun, longRun, messageList, idleSend, fanOut, manyThreads, persistedSignals, processors, commits, memory,
  longThreads, readAll, recall, copies, threadLists, httpSend, httpStreams, notifications, inboxScale,
  tracing, policies, watches, workflowSteps, scorers, postgresThreads, postgresSignals, postgresNotifications,
]
