import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { checkRun, checkSuite, closed, issueComment, review, reviewComment, status, workflowRun } from './github-payloads.ts'
import { listening, storages, thread } from './listening.ts'
import { hub, hubSecret } from './signing.ts'

async function world(externalId: string, storage?: Parameters<typeof listening>[0]) {
  const { github, post, inbox, storage: place } = await listening(storage)
  await github.subscribe({ ...thread, agentId: 'guide', externalId })
  const send = async (event: string, payload: unknown) => (await post('github', hub(event, payload))).body
  const told = async () => (await inbox()).map(({ priority, kind, summary }) => `${priority} ${kind}: ${summary}`).toReversed()
  return { send, told, post, inbox, place }
}

describe('what GitHub tells', () => {
  it('[E1.3] of a branch: checks, suites, workflows and statuses, each by the branch that it names', async () => {
    const { send, told } = await world('acme/shop@fix')
    const failure = { branch: 'fix', conclusion: 'failure' }
    for (const [event, payload] of [['check_run', checkRun(failure)], ['check_suite', checkSuite(failure)], ['workflow_run', workflowRun(failure)], ['status', status('error')]] as const) {
      expect(await send(event, payload), event).toEqual({ delivered: 1 })
    }
    for (const [event, payload] of [
      ['check_run', checkRun({ branch: 'other', conclusion: 'failure' })], ['check_run', checkRun({ branch: null, conclusion: 'failure' })], ['check_suite', checkSuite({ branch: 'fix', conclusion: null })],
      ['workflow_run', workflowRun({ ...failure, from: 'mallory/shop' })], ['status', status('pending')], ['status', status('failure', { branches: ['main'] })], ['ping', { zen: 'Keep it logically awesome.', hook_id: 1 }],
    ] as const) expect(await send(event, payload), event).toEqual({ delivered: 0 })
    expect((await told()).map((one) => one.replace(/\d+$/, ''))).toEqual([
      'high ci-status: build failure on acme/shop (fix) https://github.com/acme/shop/runs/', 'high ci-status: Acme CI failure on acme/shop (fix)',
      'high ci-status: CI failure on acme/shop (fix) https://github.com/acme/shop/actions/runs/', 'high ci-status: ci/acme error on acme/shop 6669780: The build broke https://ci.example/',
    ])
  })

  it('[E1.3] of a pull request: its checks, reviews, comments and its end, and nothing of one with its number elsewhere', async () => {
    const { send, told } = await world('acme/shop#12')
    const events = [
      ['check_run', checkRun({ branch: 'fix', conclusion: 'timed_out', numbers: [12] })], ['check_suite', checkSuite({ branch: 'fix', conclusion: 'success', numbers: [12] })], ['workflow_run', workflowRun({ branch: 'fix', conclusion: 'failure', numbers: [12] })],
      ['pull_request_review', review('changes_requested', 'Too long.')], ['pull_request_review', review('approved', null)], ['pull_request_review_comment', reviewComment('Why?')], ['issue_comment', issueComment('Nice.')], ['pull_request', closed(true)],
    ] as const
    for (const [event, payload] of events) expect(await send(event, payload), event).toEqual({ delivered: 1 })
    expect(await send('workflow_run', workflowRun({ branch: 'fix', conclusion: 'failure', elsewhere: 12 }))).toEqual({ delivered: 0 })
    expect((await told()).map((one) => one.split(' https')[0])).toEqual([
      'high ci-status: build timed_out on acme/shop (fix)', 'low ci-status: Acme CI success on acme/shop (fix)', 'high ci-status: CI failure on acme/shop (fix)', 'high review: ada asked for changes on acme/shop#12: Too long.',
      'medium review: ada approved acme/shop#12', 'medium comment: ada commented on acme/shop#12: Why?', 'medium comment: ada commented on acme/shop#12: Nice.', 'low pull-request: ada merged acme/shop#12: Fix the till',
    ])
  })

  it('[E1.3] keeps of a payload what says something', async () => {
    const { send, inbox } = await world('acme/shop')
    await send('check_run', checkRun({ branch: 'fix', conclusion: 'failure', numbers: [12] }))
    const [record] = await inbox()
    expect(record?.payload).toMatchObject({ action: 'completed', check_run: { name: 'build', conclusion: 'failure', head_sha: expect.any(String) } })
    expect(JSON.stringify(record?.payload).length).toBeLessThan(600)
  })
})

describe.each(storages)('results of CI, %s', (_, storage) => {
  it('[N1.2] takes the place of an older one of the same check on the same branch or pull request, and of no other', async () => {
    const { send, told } = await world('acme/shop', { storage: storage() })
    const results = [
      checkRun({ branch: 'fix', numbers: [12], conclusion: 'failure' }), checkRun({ branch: 'feature', numbers: [13], conclusion: 'success' }),
      checkRun({ branch: null, numbers: [14], conclusion: 'failure' }), checkRun({ branch: null, numbers: [15], conclusion: 'success' }), checkRun({ branch: null, conclusion: 'failure', suite: 8 }), checkRun({ branch: null, conclusion: 'success', suite: 9 }),
      checkRun({ branch: 'fix', numbers: [12], conclusion: 'success', name: 'lint' }),
      // Jobs of two workflows.
      checkRun({ branch: 'jobs', conclusion: 'failure', byActions: true, suite: 1 }), checkRun({ branch: 'jobs', conclusion: 'success', byActions: true, suite: 2 }),
    ]
    for (const result of results) await send('check_run', result)
    expect(await told()).toHaveLength(results.length)
    await send('check_run', checkRun({ branch: 'fix', numbers: [12], conclusion: 'success', suite: 6 }))
    const all = await told()
    expect(all).toHaveLength(results.length)
    expect(all[0]).toMatch(/^high ci-status: build success on acme\/shop \(fix\)/)
    expect(all[1]).toMatch(/^low ci-status: build success on acme\/shop \(feature\)/)
  })

  it('[E1.2] a retry of a result that took the place of another is known: also after that was read, and over no newer one', async () => {
    const { send, told, post, inbox, place } = await world('acme/shop', { storage: storage() })
    const [a, b, c] = [workflowRun({ branch: 'main', conclusion: 'failure' }), workflowRun({ branch: 'main', conclusion: 'cancelled' }), workflowRun({ branch: 'main', conclusion: 'success' })]
    for (const result of [a, b, c, b, a]) await send('workflow_run', result)
    expect(await told()).toEqual([expect.stringContaining('CI success')])
    await (await place.getStore('notifications'))?.markNotifications(thread, (await inbox()).map(({ id }) => id), 'seen')
    for (const result of [b, c, a]) expect((await post('github', hub('workflow_run', result))).status).toBe(200)
    expect(await inbox()).toMatchObject([{ status: 'seen', coalescedCount: 3 }])
  })
})

it('[E1.1] takes what GitHub sends as a form, signed as it is', async () => {
  const { post, told } = await world('acme/shop')
  const signed = (body: string, key = hubSecret): RequestInit => ({
    method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-github-event': 'issue_comment', 'x-github-delivery': 'd', 'x-hub-signature-256': `sha256=${createHmac('sha256', key).update(body).digest('hex')}` },
  })
  const form = `payload=${encodeURIComponent(JSON.stringify(issueComment('Grüezi & all + good?')))}`
  expect((await post('github', signed(form, 'another-long-secret'))).status).toBe(401)
  expect((await post('github', signed('other=1'))).status).toBe(400)
  expect((await post('github', signed('payload=%7B'))).status).toBe(400)
  expect(await post('github', signed(form))).toEqual({ status: 200, body: { delivered: 1 } })
  expect(await told()).toEqual([expect.stringContaining('ada commented on acme/shop#12: Grüezi & all + good?')])
})
