import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

// Each in a process of its own, and all of them: one that fails doesn't hide what the next would say.
for (const name of ['musts', 'lockfile', 'api', 'pack']) {
  const script = fileURLToPath(new URL(`check-${name}.mjs`, import.meta.url))
  const { status } = spawnSync(process.execPath, [script, ...process.argv.slice(2)], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
