import { notificationSql } from './notifications/sql.ts'
import { findMessagesSql } from './queries.ts'
import { scheduleSql } from './schedules.ts'
import { sql } from './sql.ts'
import { stepSql } from './steps/sql.ts'
import { subscriptionSql } from './subscriptions.ts'
import { dependentsSql } from './thread-dependents.ts'
import { movedSql, usageSql } from './usage.ts'
import { candidateSql } from './watches/candidates.ts'
import { deliverySql } from './watches/deliveries.ts'
import { inboundSql } from './watches/inbounds.ts'
import { matchingSql } from './watches/matching.ts'
import { replySql } from './watches/replies.ts'
import { watchSql } from './watches/watches.ts'
import { workflowSql } from './workflows/workflows.ts'

/** The named statements of all domains: a database with another dialect has its own text for some of them, by these names. */
export const texts = {
  threads: sql,
  steps: stepSql,
  dependents: dependentsSql,
  usage: { ...usageSql, moved: movedSql },
  queries: { findMessages: findMessagesSql },
  notifications: notificationSql,
  schedules: scheduleSql,
  subscriptions: subscriptionSql,
  inbounds: inboundSql,
  watches: watchSql,
  candidates: candidateSql,
  deliveries: deliverySql,
  matching: matchingSql,
  replies: replySql,
  workflows: workflowSql,
} as const
