/** Payloads in the shapes that GitHub sends: what Heed reads of them, and around it what it does not. */

const began = new Date(Date.now() - 120_000).toISOString()
const ended = new Date(Date.now() - 60_000).toISOString()
const api = 'https://api.github.com'

function account(login: string, id: number) {
  return { login, id, node_id: `U_${id}`, avatar_url: `https://avatars.githubusercontent.com/u/${id}?v=4`, url: `${api}/users/${login}`, html_url: `https://github.com/${login}`, type: 'User', site_admin: false }
}

function repositoryOf(fullName: string, id: number) {
  const [owner = '', name = ''] = fullName.split('/')
  return { id, node_id: `R_${id}`, name, full_name: fullName, private: false, owner: account(owner, id + 1), html_url: `https://github.com/${fullName}`, fork: false, url: `${api}/repos/${fullName}`, default_branch: 'main', open_issues_count: 2 }
}

const repository = repositoryOf('acme/shop', 700)
const sender = account('ada', 9)
const app = (slug: string, name: string) => ({ id: 15_368, slug, node_id: 'A_1', owner: account('github', 1), name, description: '', external_url: 'https://ci.example', html_url: `https://github.com/apps/${slug}`, permissions: { checks: 'write' }, events: [] })
const ci = app('acme-ci', 'Acme CI')
const actions = app('github-actions', 'GitHub Actions')

function pull(number: number, branch: string, base = repository) {
  const { id, url, name } = base
  return { url: `${url}/pulls/${number}`, id: 1_000 + number, number, head: { ref: branch, sha: shaOf(branch), repo: { id, url, name } }, base: { ref: 'main', sha: shaOf('main'), repo: { id, url, name } } }
}

function shaOf(branch: string): string {
  return Buffer.from(branch).toString('hex').padEnd(40, '0').slice(0, 40)
}

interface Checked {
  branch: string | null
  conclusion: string | null
  numbers?: number[]
  name?: string
  suite?: number
  byActions?: boolean
}

const pullsOf = ({ branch, numbers = [] }: Checked) => numbers.map((number) => pull(number, branch ?? 'theirs'))

export function checkSuite(given: Checked) {
  const { branch, conclusion, suite = 5, byActions } = given
  return {
    action: 'completed',
    check_suite: {
      id: suite, node_id: `CS_${suite}`, head_branch: branch, head_sha: shaOf(branch ?? `suite-${suite}`), status: 'completed', conclusion, url: `${repository.url}/check-suites/${suite}`, before: shaOf('before'), after: shaOf('after'),
      pull_requests: pullsOf(given), app: byActions ? actions : ci, created_at: began, updated_at: ended, latest_check_runs_count: 1, head_commit: { id: shaOf('x'), message: 'Fix' },
    },
    repository, sender,
  }
}

let runs = 0

export function checkRun(given: Checked) {
  const { conclusion, name = 'build' } = given
  const { check_suite } = checkSuite(given)
  const id = ++runs
  return {
    action: 'completed',
    check_run: {
      id, node_id: `CR_${id}`, head_sha: check_suite.head_sha, external_id: '', url: `${repository.url}/check-runs/${id}`, html_url: `https://github.com/acme/shop/runs/${id}`, details_url: 'https://ci.example',
      status: 'completed', conclusion, started_at: began, completed_at: ended, output: { title: null, summary: null, text: null, annotations_count: 0, annotations_url: '' },
      name, check_suite, app: check_suite.app, pull_requests: pullsOf(given),
    },
    repository, sender,
  }
}

export function workflowRun(given: Checked & { from?: string; elsewhere?: number }) {
  const { branch, conclusion, name = 'CI', from, elsewhere } = given
  const id = ++runs
  const head_repository = from === undefined ? repository : repositoryOf(from, 800)
  return {
    action: 'completed',
    workflow_run: {
      id, name, node_id: `WFR_${id}`, head_branch: branch, head_sha: shaOf(branch ?? ''), run_number: id, event: 'pull_request', status: 'completed', conclusion, workflow_id: 3, check_suite_id: id,
      url: `${repository.url}/actions/runs/${id}`, html_url: `https://github.com/acme/shop/actions/runs/${id}`,
      pull_requests: [...pullsOf(given), ...(elsewhere === undefined ? [] : [pull(elsewhere, branch ?? '', repositoryOf('upstream/shop', 900))])],
      created_at: began, actor: sender, run_attempt: 1, head_commit: { id: shaOf('x'), message: 'Fix' }, repository, head_repository,
    },
    workflow: { id: 3, name, path: '.github/workflows/ci.yml', state: 'active' },
    repository, sender,
  }
}

export function status(state: string, { branches = ['fix'], context = 'ci/acme' } = {}) {
  const sha = shaOf('fix')
  return {
    id: ++runs, sha, name: 'acme/shop', target_url: 'https://ci.example/7', avatar_url: null, context, description: 'The build broke', state, commit: { sha, node_id: 'C_1', commit: { message: 'Fix', author: { name: 'Ada' } } },
    branches: branches.map((name) => ({ name, commit: { sha, url: '' }, protected: false })), created_at: began, updated_at: began, repository, sender,
  }
}

const pullRequest = { ...pull(12, 'fix'), node_id: 'PR_1', html_url: 'https://github.com/acme/shop/pull/12', state: 'open', locked: false, title: 'Fix the till', user: sender, body: 'It counts twice.', draft: false, merged: false, labels: [], _links: { self: { href: '' } } }

export function review(state: string, body: string | null) {
  return { action: 'submitted', review: { id: ++runs, node_id: 'PRR_1', user: sender, body, commit_id: shaOf('fix'), submitted_at: began, state, html_url: 'https://github.com/acme/shop/pull/12#pullrequestreview-1', author_association: 'OWNER', _links: { html: { href: '' } } }, pull_request: pullRequest, repository, sender }
}

export function reviewComment(body: string) {
  return { action: 'created', comment: { id: ++runs, pull_request_review_id: 1, diff_hunk: '@@ -1 +1 @@', path: 'till.ts', position: 1, user: sender, body, html_url: 'https://github.com/acme/shop/pull/12#discussion_r1', line: 4, side: 'RIGHT' }, pull_request: pullRequest, repository, sender }
}

export function issueComment(body: string) {
  const issue = { id: 77, number: 12, title: 'Fix the till', html_url: 'https://github.com/acme/shop/pull/12', user: sender, labels: [], state: 'open', comments: 1, pull_request: { url: `${repository.url}/pulls/12`, html_url: 'https://github.com/acme/shop/pull/12' }, body: null }
  return { action: 'created', issue, comment: { id: ++runs, node_id: 'IC_1', user: sender, html_url: 'https://github.com/acme/shop/pull/12#issuecomment-1', body, author_association: 'OWNER', performed_via_github_app: null }, repository, sender }
}

export function closed(merged: boolean) {
  return { action: 'closed', number: 12, pull_request: { ...pullRequest, state: 'closed', merged }, repository, sender }
}
