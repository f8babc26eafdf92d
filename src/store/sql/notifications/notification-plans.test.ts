import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { migrations } from '../../sqlite/migrations.ts'
import { notificationSql } from './sql.ts'

const database = new DatabaseSync(':memory:')
for (const step of migrations) database.exec(step)
afterAll(() => database.close())

function planOf(text: string): string {
  return database.prepare(`EXPLAIN QUERY PLAN ${text}`).all().map((step) => String(step.detail)).join('\n')
}

/** A batch is read once, when it is emitted; its few groups are sorted. */
const excused: ReadonlySet<string> = new Set([notificationSql.counted])

describe('query plans of the inbox', () => {
  it.each(Object.entries(notificationSql).filter(([, text]) => !excused.has(text)))('%s searches', (_, text) => {
    expect(planOf(text).replaceAll(/SCAN (CONSTANT ROW|span)/g, '')).not.toMatch(/SCAN|TEMP B-TREE/)
  })

  it('look at what is due and at nothing else', () => {
    expect(planOf(notificationSql.due)).toMatch(/USING INDEX heed_notifications_due \(agent_id=\? AND due_at/)
    expect(planOf(notificationSql.nextDue)).toMatch(/USING COVERING INDEX heed_notifications_due \(agent_id=\?/)
    expect(planOf(notificationSql.dueBatches)).toMatch(/USING INDEX heed_notification_batches_due \(agent_id=\? AND due_at/)
    expect(planOf(notificationSql.changes)).toMatch(/SEARCH n USING INDEX heed_notifications_changed \(<expr>=\? AND resource_id=\? AND /)
    expect(planOf(notificationSql.idle)).toMatch(/USING INDEX heed_notifications_idle/)
    expect(planOf(notificationSql.counted)).toMatch(/USING INDEX heed_notifications_batch/)
  })
})
