/** The rows of the table. */
export const domains = ['threads', 'memory', 'notifications', 'schedules', 'subscriptions', 'recall', 'watches'] as const
export type Domain = (typeof domains)[number]

/** Its columns: the values of HEED_STORES. */
export const engines = ['memory', 'file', 'client', 'postgres', 'postgres+redis'] as const
export type Engine = (typeof engines)[number]

export const titles: Readonly<Record<Engine, string>> = {
  memory: '`:memory:`', file: 'file', client: '`@libsql/client`', postgres: 'PostgreSQL', 'postgres+redis': 'PostgreSQL + Redis',
}

/** What runs as one process: the conformance of all domains, and a folder of `test` each. */
export const suites = ['conformance', 'lanes', 'schedule', 'sources', 'inbox', 'memory', 'thread'] as const
export type Suite = (typeof suites)[number]

export function folderOf(suite: Suite): string {
  return suite === 'conformance' ? 'test/matrix/' : `test/${suite}/`
}

const domainsOfFolders: Readonly<Record<string, Domain>> = {
  thread: 'threads', lanes: 'threads', memory: 'memory', inbox: 'notifications', schedule: 'schedules', sources: 'subscriptions',
}

/** The domains that a suite has tests of. */
export function domainsIn(suite: Suite): readonly Domain[] {
  if (suite === 'conformance') return domains
  return suite === 'memory' ? ['memory', 'recall'] : [domainsOfFolders[suite] ?? 'threads']
}

/** Conformance names its domain; tests of recall are found by their file. */
export function domainOf(path: string, title: string, fullName: string): Domain {
  if (path.startsWith('test/matrix/')) return domains.find((domain) => title.startsWith(`${domain}: `)) ?? (fullName.startsWith('recall') ? 'recall' : 'threads')
  if (/recall|embed|vector|first-search|repeated-questions/.test(path)) return 'recall'
  return domainsOfFolders[path.split('/')[1] ?? ''] ?? 'threads'
}
