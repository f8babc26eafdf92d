// Programs that tests need. `node scripts/programs.ts chromium` prints where one is, and installs it where it is missing.
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

/** Where something that a test needs is, or why it is missing. */
export type Found = { path: string } | { missing: string }

interface Program {
  title: string
  /** Any of these commands will do. */
  names: readonly string[]
  /** The packages of Debian that have it. */
  packages: readonly string[]
  /** A variable of the environment that names another one. */
  variable?: string
}

const programs = {
  chromium: {
    title: 'Chromium',
    // The shell opens a page in a quarter of the time: it has no windows and no pages of its own.
    names: ['chromium-headless-shell', 'chrome-headless-shell', 'chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'],
    packages: ['chromium-headless-shell'],
    variable: 'HEED_CHROMIUM',
  },
  curl: { title: 'curl', names: ['curl'], packages: ['curl'], variable: 'HEED_CURL' },
  cc: { title: 'A C compiler', names: ['cc', 'gcc', 'clang'], packages: ['gcc', 'libc6-dev'], variable: 'HEED_CC' },
  script: { title: 'script', names: ['script'], packages: ['bsdutils'] },
  ip: { title: 'ip', names: ['ip'], packages: ['iproute2'] },
  espeak: { title: 'espeak-ng', names: ['espeak-ng'], packages: ['espeak-ng'], variable: 'HEED_ESPEAK' },
  sox: { title: 'SoX', names: ['sox'], packages: ['sox'], variable: 'HEED_SOX' },
  redis: { title: 'Redis', names: ['redis-server', 'valkey-server'], packages: ['redis-server'], variable: 'HEED_REDIS_SERVER' },
} satisfies Record<string, Program>

const run = promisify(execFile)

/** Finds a program. Where it is missing, the package manager of Debian installs it, if this process runs as root. */
export async function findProgram(name: keyof typeof programs): Promise<Found> {
  const { title, names, packages, variable }: Program = programs[name]
  const named = variable && process.env[variable]
  if (named) return (await isExecutable(named)) ? { path: named } : { missing: `${variable} names ${named}, which can't be run` }
  const path = await onPath(names)
  if (path) return { path }
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return { missing: `${title} is not installed, and only root can install it` }
  try {
    await install(packages)
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    return { missing: `${title} could not be installed: ${/^E: .*$/m.exec(stderr)?.[0] ?? message}` }
  }
  const installed = await onPath(names)
  return installed ? { path: installed } : { missing: `apt-get installed no ${title}` }
}

/** For the title of a test that is skipped: the report of a run has titles, and no reasons. */
export function whySkipped(found: Found): string {
  return 'missing' in found ? ` (skipped: ${found.missing})` : ''
}

/** Test files run in several processes, and an index that another process is replacing has no packages: one at a time. */
async function install(packages: readonly string[]): Promise<void> {
  const apt = ['apt-get', '-o', 'DPkg::Lock::Timeout=120', '-y', '--no-install-recommends'].join(' ')
  const commands = `${apt} update; ${apt} install ${packages.join(' ')}`
  await run('flock', [join(tmpdir(), 'heed-apt.lock'), 'sh', '-c', commands], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, timeout: 600_000, maxBuffer: 1 << 24,
  })
}

async function onPath(names: readonly string[]): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of names) if (folder !== '' && (await isExecutable(join(folder, name)))) return join(folder, name)
  }
  return undefined
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(() => true, () => false)
}

if (import.meta.main) {
  const found = await findProgram(process.argv[2] as keyof typeof programs)
  console.log('path' in found ? found.path : found.missing)
  process.exitCode = 'path' in found ? 0 : 1
}
