import { expectTypeOf } from 'vitest'
import type { AgentExecutionOptions } from './options.ts'
import { RequestContext } from './request-context.ts'

interface Account {
  user: string
  plan: 'free' | 'team'
}

const typed = new RequestContext<Account>()
expectTypeOf(typed.get('plan')).toEqualTypeOf<'free' | 'team'>()
expectTypeOf(typed.all.user).toEqualTypeOf<string>()
// @ts-expect-error No such plan.
typed.set('plan', 'gold')

const entries = new RequestContext([['user', 'u1'], ['seats', 2]])
expectTypeOf(entries).toEqualTypeOf<RequestContext>()
const map = new RequestContext(new Map([['user', 'u1']]))
expectTypeOf(map).toEqualTypeOf<RequestContext>()
expectTypeOf(new RequestContext({ seats: 1 }).get('seats')).toEqualTypeOf<number>()
export const filled = new RequestContext<Account>(new Map([['user', 'u1']]))

export const options: AgentExecutionOptions[] = [
  { requestContext: typed },
  { requestContext: new RequestContext<Account>({ user: 'u1', plan: 'free' }) },
  { requestContext: entries },
  { requestContext: map },
  { requestContext: new RequestContext({ user: 'u1' }) },
]
