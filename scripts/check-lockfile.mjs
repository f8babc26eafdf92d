import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { checkLockfile } from './checks/lockfile.ts'
import { report } from './checks/report.ts'

const root = process.argv[2] ?? process.cwd()
report('lockfile', checkLockfile(root))
// Its packages are installed for the tests that need them.
const onnxruntime = join(root, 'scripts/onnxruntime')
if (existsSync(onnxruntime)) report('lockfile of onnxruntime', checkLockfile(onnxruntime))
