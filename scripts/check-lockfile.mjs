import { checkLockfile } from './checks/lockfile.ts'
import { report } from './checks/report.ts'

report('lockfile', checkLockfile(process.argv[2] ?? process.cwd()))
